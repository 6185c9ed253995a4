//! The binary as a user runs it.

mod bad_input;
mod budget;
mod circuits;
mod common;
mod compare;
mod damage;
mod dry_run;
mod json;
mod ledger;
mod machines;
mod messages;
mod network;
mod own_files;
mod own_images;
mod pages;
mod prices;
mod privacy;
mod resume;
mod roles;
mod shards;
mod small_pools;
mod submit;
mod sweep;
mod terminal;
mod truth;
mod votes;
