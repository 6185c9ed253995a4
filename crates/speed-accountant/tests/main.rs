//! The accountant through its public interface.

mod audit;
mod bad_input;
mod checks;
mod enumeration;
mod forecast;
mod given;
mod ledger;
mod neighbours;
mod oracle;
mod party;
mod properties;
mod published_votes;
mod reference;
