"""Suites and sweeps on the workers of a Dask cluster, one at a time on each GPU.

`cluster` hands jobs to the places that are free, see `gpubench.devices.place`; `suites` and
`sweeps` say what the jobs are. `archive` makes a suite's folder something that can be sent.
"""
