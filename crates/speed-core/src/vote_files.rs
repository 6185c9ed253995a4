//! Users' files of votes: label matrices (teachers x queries) and histograms (queries x classes), as `.npy` or CSV.
//!
//! Its main uses:
//! - read the votes of all teachers ([`Table::parse`], then [`VoteFile::new`]);
//! - read the votes of one teacher for a round, in the round's order or by the names of its queries ([`parse_answer`]);
//! - read the list of a round's queries: pictures, or groups of pictures ([`NamedQueries`]);
//! - decide whether a file holds labels or histograms ([`VotesForm`]); an ambiguous file is refused.

mod answer;
mod error;
mod form;
mod pairs;
mod query_list;
mod records;
mod table;
mod vote_file;

pub use answer::{AnswerError, QueryNames, Question, parse_answer};
pub use error::{Location, MAX_FILE, TableError};
pub use form::{FormError, Known, VotesForm};
pub use pairs::{Pair, Pairs, parse_pairs};
pub use query_list::{MAX_QUERY_LIST, NamedQueries};
pub use records::csv_cell;
pub use table::{EMPTY, Table, parse_numbers, read_bytes};
pub use vote_file::VoteFile;
