"""What can be chosen in a view, declared once: the widgets and addresses of its page, flags, keyword arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.views.series.changes import Series

Choices = Mapping[Any, str] | range
"""Labels by value, or whole numbers."""
Subject = Pair | Series
"""What a view is about."""


@dataclass(frozen=True)
class Option:
    """One option of a view: a switch, a text, a number, or one of `choices`.

    `choices` may be made for a subject and the options before this one; what is declared as default but is not among
    them is the first of them, and with a default of None nothing need be chosen. `when` says for which subjects it can
    be changed. `address` is its name in the address of a page, which has labels; everything else has names and values.
    `is_list`: the choices are many or long; `is_slider`: they are many and in order. `is_in_address`: a text without a
    widget, which is only in the address: a selected row (`address` is then that of the table, and `row`), or what a
    `Live` block chooses. Changing the option `resets` parameters of the address, and writes what widgets of the keys
    `pins` show to it. `pixels` and `icon` are of the widget.
    """

    name: str
    label: str
    default: Any
    choices: Choices | Callable[[Any, Any], Choices] | None = None
    when: Callable[[Any, Any], bool] | None = None
    address: str = ""
    help: str = ""
    hint: str = ""
    is_list: bool = False
    is_slider: bool = False
    is_in_address: bool = False
    resets: Sequence[str] = ()
    pins: Sequence[str] = ()
    pixels: int = 0
    icon: str = ":material/filter_alt:"

    @property
    def key(self) -> str:
        """Its name in an address."""
        return self.address or self.name

    def offered(self, subject: Subject, options: Any) -> Choices | None:
        """What can be chosen for a subject, given the options before this one; None for a switch or a text."""
        return self.choices(subject, options) if callable(self.choices) else self.choices

    def is_open(self, subject: Subject, options: Any) -> bool:
        """Whether there is anything to choose."""
        if self.when is not None and not self.when(subject, options):
            return False
        offered = self.offered(subject, options)
        return offered is None or len(offered) > (0 if self.default is None else 1)

    def preset(self, subject: Subject, options: Any) -> Any:
        """The value that holds where none is chosen."""
        offered = self.offered(subject, options)
        if self.default is None or not offered or self.default in offered:
            return self.default
        return next(iter(offered))


def option(default: Any, label: str, choices: Any = None, **others: Any) -> Any:
    """A field of the options of a view, which are a frozen dataclass; parameters as those of `Option`."""
    return field(default=default, metadata={"option": Option("", label, default, choices, **others)})


@dataclass(frozen=True)
class NoOptions:
    """Of a view where nothing can be chosen."""


def declared(options: type) -> list[Option]:
    """The options of this class, in their order."""
    return [replace(one.metadata["option"], name=one.name) for one in fields(options)]


def options_with(options: type, pair: Pair, values: Mapping[str, Any]) -> Any:
    """Options with these values by name, for a pair. Raises `Unknown` for a name or value that it does not have,
    `TfcompareError` for an option that has no effect on them."""
    known = declared(options)
    if (other := next((name for name in values if name not in {one.name for one in known}), None)) is not None:
        raise Unknown("option", other, [one.name for one in known])
    found = options()
    for one in known:
        value, offered = values.get(one.name), one.offered(pair, found)
        if value is not None and offered is not None and value not in offered:
            raise Unknown(one.label.lower(), str(value), list(map(str, offered)))
        preset = one.preset(pair, found)
        if value is not None and value != preset and not one.is_open(pair, found):
            raise TfcompareError(f"the option {one.name} ({one.label}) changes nothing here; leave it out")
        value = preset if value is None else value
        found = replace(found, **{one.name: value})
    return found
