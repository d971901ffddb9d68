"""What all suites share, whichever of their files is run."""

import hypothesis

from support.signals import usual_signals

usual_signals()
# What one example takes says nothing on a machine that does much else.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")
