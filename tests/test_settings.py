"""What the command line and the environment say."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.profiles import ROOT
from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.settings import Settings


def test_nothing_said_means_the_sample_runs() -> None:
    assert settings.read([], {}) == Settings(places=(), cache_bytes=1 << 30)


def test_paths_on_the_command_line() -> None:
    assert settings.read(["--", "logs/a", "logs/b"], {}).places == (Path("logs/a"), Path("logs/b"))


def test_the_environment_is_asked_where_the_command_line_is_silent() -> None:
    environment = {"TFCOMPARE_PLACES": os.pathsep.join(["/x", "", "/y"]), "TFCOMPARE_CACHE_MB": "8"}
    assert settings.read([], environment) == Settings(places=(Path("/x"), Path("/y")), cache_bytes=8 << 20)
    assert settings.read(["/z"], environment).places == (Path("/z"),)


def test_urls_stay_as_they_are_and_their_colons_part_nothing() -> None:
    assert settings.read(["s3://bucket/logs", "logs"], {}).places == ("s3://bucket/logs", Path("logs"))
    listed = ["/x", "s3://bucket/a", "http://host:8000/logs", "https://[::1]:80/y", "rel/z", "memory://m", "gs://b"]
    expected = tuple(place if "://" in place else Path(place) for place in listed)
    assert settings.read([], {"TFCOMPARE_PLACES": os.pathsep.join(listed)}).places == expected


def test_a_home_folder_is_found() -> None:
    assert settings.read(["~/logs"], {}).places == (Path.home() / "logs",)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_bad_cache_size_is_named(value: str) -> None:
    with pytest.raises(TfcompareError, match="TFCOMPARE_CACHE_MB must be a whole number"):
        settings.read([], {"TFCOMPARE_CACHE_MB": value})


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(TfcompareError, match="unrecognized arguments: --rot; after `app"):
        settings.read(["--rot", "logs"], {})


def test_tests_can_override_what_was_read() -> None:
    chosen = Settings(places=(Path("/chosen"),))
    with settings.override(chosen):
        assert settings.current() is chosen
        with settings.override(Settings()):
            assert settings.current() == Settings()
        assert settings.current() is chosen


def test_the_app_and_the_samples_are_where_they_are_looked_for() -> None:
    assert (settings.app_folder() / "app.py").is_file()
    assert (settings.sample_runs() / "README.md").is_file()


def test_every_variable_that_is_named_is_declared() -> None:
    named = {
        name for path in ROOT.glob("tfcompare/**/*.py") for name in re.findall("TFCOMPARE_[A-Z_]+", path.read_text())
    }
    declared = {field.encode_name for field in settings.FIELDS}
    assert len(declared) >= 19
    assert named <= declared, named - declared


def test_roots_and_capture_come_from_options_or_the_environment() -> None:
    given = settings.read(["--root", "/a", "--root=/b", "logs", "--allow-capture"], {"TFCOMPARE_ROOTS": "/c"})
    assert (given.roots, given.places, given.allow_capture) == ((Path("/a"), Path("/b")), (Path("logs"),), True)
    roots = os.pathsep.join(["/c", "/d"])
    asked = settings.read([], {"TFCOMPARE_ROOTS": roots, "TFCOMPARE_ALLOW_CAPTURE": "1", "TFCOMPARE_UPLOAD_MB": "5"})
    assert (asked.roots, asked.allow_capture, asked.upload_bytes) == ((Path("/c"), Path("/d")), True, 5 * 2**20)
    assert not settings.read([], {}).allow_capture


@pytest.mark.parametrize("arguments", [["--root"], ["--root="], ["logs", "--root"]])
def test_a_root_without_a_folder_is_told(arguments: list[str]) -> None:
    with pytest.raises(TfcompareError, match="--root: expected one argument"):
        settings.read(arguments, {})


@pytest.mark.parametrize("value", ["yes", "2", "off"])
def test_a_flag_is_0_or_1(value: str) -> None:
    with pytest.raises(TfcompareError, match="TFCOMPARE_ALLOW_CAPTURE must be 0 or 1"):
        settings.read([], {"TFCOMPARE_ALLOW_CAPTURE": value})


def test_data_is_kept_in_the_user_s_folder_unless_another_is_named() -> None:
    assert settings.read([], {"TFCOMPARE_DATA": "/data"}).data_folder == Path("/data")
    assert settings.read([], {}).data_folder.name == "tfcompare"


@pytest.mark.parametrize("variable", [f.encode_name for f in settings.FIELDS if f.name.endswith("_bytes")])
def test_every_size_is_checked_at_the_start(variable: str) -> None:
    assert variable.endswith("_MB")
    with pytest.raises(
        TfcompareError, match=f"{variable} must be a whole number of megabytes, at least 1; not 'plenty'"
    ):
        settings.read([], {variable: "plenty"})


def test_the_store_and_the_limits_of_reading_can_be_turned_off() -> None:
    assert settings.from_environment({}).store_folder is not None
    given = settings.from_environment(
        {"TFCOMPARE_STORE": "~/frames", "TFCOMPARE_READ_MB": "7", "TFCOMPARE_READ_S": "8"}
    )
    assert (given.store_folder, given.read_limits) == (Path.home() / "frames", settings.ReadLimits(7 << 20, 8))
    off = settings.from_environment({"TFCOMPARE_STORE": "off", "TFCOMPARE_READ_MB": "off", "TFCOMPARE_FETCHED": "off"})
    assert (off.store_folder, off.read_limits, off.fetched_folder) == (None, None, Path("off"))
