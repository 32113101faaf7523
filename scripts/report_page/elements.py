# SPDX-License-Identifier: GPL-2.0-only
"""Elements of the page as HTML."""

from html import escape


def tag(name, *children, **attributes):
    """An element. Children are HTML; attributes are escaped, `data_x` becomes `data-x`, `class_` becomes `class`."""
    words = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
                    if value is not None)
    return f"<{name}{words}>{''.join(children)}</{name}>"


def text(value):
    return escape(str(value))


def table(heads, rows, numbers=()):
    """A table of texts that are HTML already; `numbers`: columns that are aligned to the right."""
    def line(name, cells):
        return tag("tr", *(tag(name, cell, class_="number" if i in numbers else None) for i, cell in enumerate(cells)))
    return tag("table", tag("thead", line("th", heads)), tag("tbody", *(line("td", row) for row in rows)))


def section(title, name, *children, **attributes):
    return tag("section", tag("h2", text(title)), *children, data_name=name, **attributes)


def chart(name):
    return tag("div", data_section=name)


def note(words):
    return tag("p", words, class_="note")
