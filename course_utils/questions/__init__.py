"""Questions to answer in a notebook: predictions before a cell, quizzes, pre- and post-test.

The questions and their answers stand in the TOML files of this folder, one for each lesson, so that
no answer stands in a notebook.
"""

from course_utils.questions.predictions import predict
from course_utils.questions.quizzes import quiz

__all__ = ["predict", "quiz"]
