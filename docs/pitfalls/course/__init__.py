"""What the lessons share: a GPU to work on, exercises with a check, pictures, recorded figures."""

from course.exercises import check
from course.pictures import samples_figure, show, window
from course.place import recorded, recorded_trace, start

__all__ = ["check", "recorded", "recorded_trace", "samples_figure", "show", "start", "window"]
