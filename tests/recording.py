"""A back end for ranges that writes down what it is asked to do."""

import functools
import itertools

from gpubench.ranges.backends import Annotation, Backend


class Recorder:
    """The calls that ranges made, and the labels that they made them with."""

    def __init__(self):
        self.calls = []
        self.labels = []
        self.backend = Backend("recording", "this is a test", self.annotate)
        self._ids = itertools.count()

    def annotate(self, label):
        self.labels.append(label)
        return Annotation(
            push=lambda: self.calls.append(f"push {label.message}"),
            pop=lambda: self.calls.append(f"pop {label.message}"),
            start=functools.partial(self._start, label.message),
            end=lambda number: self.calls.append(f"end {number}"),
            mark=lambda: self.calls.append(f"mark {label.message}"),
        )

    def _start(self, message):
        number = next(self._ids)
        self.calls.append(f"start {message} as {number}")
        return number
