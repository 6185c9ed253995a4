//! The programs of the roles as library calls: faults, interruptions, noise. (The binary is tested in `speed-cli`.)

mod attacks;
mod common;
mod damaged_files;
mod decoders;
mod false_logs;
mod faults;
mod joint;
mod lying_server;
mod noise;
mod opener;
mod state;
mod student;
