"""Profiles that arrive by the browser: checked, unpacked and kept in the user's data folder."""

from tfcompare.sources.leftovers import clean, session_owner
from tfcompare.sources.uploads.kept import Arrival, Upload, Uploads
from tfcompare.sources.uploads.limits import BadUpload, Limits

__all__ = ["Arrival", "BadUpload", "Limits", "Upload", "Uploads", "clean", "session_owner"]
