"""The types of benchmarks that asv is given, one a module."""
