"""What the command line and the environment say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.settings import Settings


def test_nothing_said_means_the_sample_runs() -> None:
    assert settings.read([], {}) == Settings(places=(), cache_bytes=1024 * 2**20)


def test_paths_on_the_command_line() -> None:
    assert settings.read(["--", "logs/a", "logs/b"], {}).places == (Path("logs/a"), Path("logs/b"))


def test_the_environment_is_asked_where_the_command_line_is_silent() -> None:
    environment = {"TFCOMPARE_PLACES": os.pathsep.join(["/x", "", "/y"]), "TFCOMPARE_CACHE_MB": "8"}
    assert settings.read([], environment) == Settings((Path("/x"), Path("/y")), 8 * 2**20)
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
    with pytest.raises(TfcompareError, match="unknown option '--rot'"):
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


def test_every_variable_is_documented() -> None:
    variables = [value for name, value in vars(settings).items() if name.endswith(("_VARIABLE", "_OPTION"))]
    assert len(variables) >= 8
    for name in variables:
        assert f"`{name}" in (settings.__doc__ or "")


def test_roots_and_capture_come_from_options_or_the_environment() -> None:
    given = settings.read(["--root", "/a", "--root=/b", "logs", "--allow-capture"], {"TFCOMPARE_ROOTS": "/c"})
    assert (given.roots, given.places, given.allow_capture) == ((Path("/a"), Path("/b")), (Path("logs"),), True)
    roots = os.pathsep.join(["/c", "/d"])
    asked = settings.read([], {"TFCOMPARE_ROOTS": roots, "TFCOMPARE_ALLOW_CAPTURE": "1", "TFCOMPARE_UPLOAD_MB": "5"})
    assert (asked.roots, asked.allow_capture, asked.upload_bytes) == ((Path("/c"), Path("/d")), True, 5 * 2**20)
    assert not settings.read([], {}).allow_capture


@pytest.mark.parametrize("arguments", [["--root"], ["--root="], ["logs", "--root"]])
def test_a_root_without_a_folder_is_told(arguments: list[str]) -> None:
    with pytest.raises(TfcompareError, match="--root needs a folder behind it"):
        settings.read(arguments, {})


@pytest.mark.parametrize("value", ["yes", "true", "2"])
def test_a_flag_is_0_or_1(value: str) -> None:
    with pytest.raises(TfcompareError, match="TFCOMPARE_ALLOW_CAPTURE must be 0 or 1"):
        settings.read([], {"TFCOMPARE_ALLOW_CAPTURE": value})


def test_data_is_kept_in_the_user_s_folder_unless_another_is_named() -> None:
    assert settings.read([], {"TFCOMPARE_DATA": "/data"}).data_folder == Path("/data")
    assert settings.read([], {}).data_folder.name == "tfcompare"


@pytest.mark.parametrize(
    "variable",
    [
        settings.CACHE_VARIABLE,
        settings.FETCHED_MB_VARIABLE,
        settings.STORE_MB_VARIABLE,
        settings.PACK_VARIABLE,
        settings.ARRIVING_VARIABLE,
        settings.USER_UPLOADS_VARIABLE,
        settings.UPLOADS_VARIABLE,
    ],
)
def test_every_bound_is_checked_at_the_start(variable: str) -> None:
    with pytest.raises(TfcompareError, match=f"{variable} must be a whole number of megabytes"):
        settings.read([], {variable: "plenty"})


def test_the_store_has_a_folder_unless_it_is_off() -> None:
    assert settings.store_folder({}) is not None
    assert settings.store_folder({"TFCOMPARE_STORE": "~/frames"}) == Path.home() / "frames"
    assert settings.store_folder({"TFCOMPARE_STORE": "off"}) is None
