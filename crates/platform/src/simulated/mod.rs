//! A world that tests and the simulator own: files that can lose, tear, refuse and fill up.
