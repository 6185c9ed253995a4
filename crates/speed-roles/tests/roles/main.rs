//! The programs of the roles as library calls: faults, interruptions, noise. (The binary is tested in `speed-cli`.)

mod common;
mod faults;
mod noise;
mod state;
mod student;
