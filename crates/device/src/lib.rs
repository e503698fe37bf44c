//! Real banks: block devices and files on io_uring; which drives there are, and which may be written.
