//! The tests of dissection and flows as one program.

mod community_id;
mod dissected;
mod expression;
mod flow_index;
mod flow_table;
mod fragments;
mod headers;
mod stack;
mod tshark;
