//! Twenty steps written down for another implementation, and compared with what it found: scripts/peers/training.
