//! From the privacy of each query to that of all: conversion of moments, optimal composition of pure epsilons, exact
//! composition of Gaussian noise.

mod conversion;
mod gaussian;
mod optimal;

pub use conversion::{improved_epsilon, tail_bound_epsilon};
pub use gaussian::{gaussian_delta, gaussian_epsilon};
pub use optimal::{optimal_delta, optimal_epsilon, optimal_epsilon_of};
