"""Folders of benchmarks in asv's style: found, run in fresh processes, and gone on with.

What the parts say to each other stands in `case`; `files` and `loading` find files and import
them, `members` finds the benchmarks in them, `kinds` says how each kind is measured. `child` does
that in a fresh process, `process` and `schedule` make it do so; `agenda` says what is still to do,
and `run` puts it all together.
"""
