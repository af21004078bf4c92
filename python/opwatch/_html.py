"""How results show themselves in a notebook: tables with bars, trees that fold, steps with their phases.

Numbers are written by the library (as the program prints them); here is only the layout. No script is needed.
"""
import html

ROWS_MAX = 200
TREE_ROWS_MAX = 2000
_WITH_BAR = ("ns", "us", "bytes", "count", "percent")

# The phases of a step, in the order of their bar; colours that differ for the colour-blind, too.
_PHASES = (("input_ns", "input", "#d55e00"), ("host_ns", "host", "#e69f00"), ("initialisation_ns", "initialisation", "#999999"),
           ("allocation_ns", "allocation", "#b15928"), ("launch_ns", "launch", "#f0e442"),
           ("host_to_device_ns", "to device", "#56b4e9"), ("compute_ns", "compute", "#009e73"),
           ("communication_ns", "communication", "#cc79a7"), ("device_to_host_ns", "to host", "#0072b2"),
           ("synchronisation_ns", "synchronisation", "#8c564b"), ("run_queue_ns", "run queue", "#fb9a99"),
           ("idle_ns", "idle", "#dddddd"))

_DIFF_COLUMNS = ("phase", "op", "line", "rank", "base_ns", "new_ns", "delta_ns", "base_count", "new_count", "change", "new_op")

_STYLE = ("<style>.opw{font:12px/1.4 sans-serif}.opw td,.opw th{padding:1px 8px;text-align:right;white-space:nowrap}"
          ".opw td.t,.opw th.t{text-align:left;max-width:40em;overflow:hidden;text-overflow:ellipsis}"
          ".opw details{margin-left:1.2em}.opw summary,.opw .leaf{white-space:nowrap}.opw .leaf{margin-left:2.2em}"
          ".opw .v{color:#777;margin-left:1em}.opw .b{display:inline-block;height:.8em;background:#9ecae1;"
          "margin-left:1em;vertical-align:middle}.opw i{display:inline-block;height:1em;vertical-align:middle}"
          "</style>")


def page(result):
    """The HTML of a result."""
    if result.view == "steps" and len(result):
        body = _steps(result) + _table(result)
    elif result.view == "diff":
        body = _diff(result)
    elif len(result) and any(result.depths):
        body = _tree(result)
    else:
        body = _table(result)
    return _STYLE + '<div class="opw">' + body + _messages(result) + "</div>"


def _messages(result):
    return "".join("<p>%s</p>" % html.escape(text) for text in result.messages)


def _more(shown, count):
    return "<p>%d of %d rows; to_pandas() has all of them</p>" % (shown, count) if shown < count else ""


def _shares(result, place):
    """Each value as a part of the largest, for bars; None where there is no sense in them."""
    column = result.schema[place]
    if column.type not in ("int", "real") or column.unit not in _WITH_BAR:
        return None
    values = result.column(column.name)[:ROWS_MAX]
    largest = max((value for value in values if value is not None), default=0)
    if largest <= 0 or min((value for value in values if value is not None), default=0) < 0:
        return None
    return [(value or 0) / largest for value in values]


def _cell(result, row, place, shares):
    column = result.schema[place]
    text = html.escape(result._native.show(row, place) or "")
    if column.type == "text":
        return '<td class="t" title="%s">%s</td>' % (text, text)
    if shares is None:
        return "<td>%s</td>" % text
    percent = 100 * shares[row]
    return ('<td style="background:linear-gradient(to left,#9ecae188 %.1f%%,transparent %.1f%%)">%s</td>'
            % (percent, percent, text))


def _has_values(result, place):
    """Columns in which nothing is known are left out."""
    known = result._native.known(place)
    return known is None or any(known)


def _table(result):
    if not len(result):
        return "<p>%s: no rows</p>" % html.escape(result.view)
    rows = min(len(result), ROWS_MAX)
    places = [i for i in range(len(result.columns)) if _has_values(result, i)]
    shares = {i: _shares(result, i) for i in places}
    head = "".join("<th%s>%s</th>" % (' class="t"' if result.schema[i].type == "text" else "",
                                      html.escape(result.schema[i].title)) for i in places)
    body = "".join("<tr>%s</tr>" % "".join(_cell(result, row, i, shares[i]) for i in places) for row in range(rows))
    return "<table><tr>%s</tr>%s</table>%s" % (head, body, _more(rows, len(result)))


def _diff(result):
    """The sentence, what can be concluded, limits, and the rows with bars to both sides: red is slower, blue is faster."""
    lines = ["<p><b>%s.</b> Conclusion: %s%s.</p>" % (html.escape(result.sentence), html.escape(result.conclusion),
                                                     ": " + html.escape(result.comparable_why) if result.comparable_why else "")]
    if result.limits:
        lines.append("<ul>%s</ul>" % "".join("<li>%s: <b>%s</b>, %s</li>" % tuple(
            html.escape(limit[key]) for key in ("limit", "gate", "message")) for limit in result.limits))
    count = min(len(result), ROWS_MAX)
    places = [i for i, name in enumerate(result.columns) if name in _DIFF_COLUMNS and _has_values(result, i)]
    deltas = result.column("delta_ns")[:count]
    largest = max((abs(value) for value in deltas), default=0)
    head = "".join("<th%s>%s</th>" % (' class="t"' if result.schema[i].type == "text" else "",
                                      html.escape(result.schema[i].title)) for i in places)
    rows = []
    for row in range(count):
        bar = '<i style="width:%.2fem;background:%s"></i>' % (
            10 * abs(deltas[row]) / largest if largest else 0, "#d6604d" if deltas[row] > 0 else "#4393c3")
        rows.append("<tr>%s<td class=\"t\">%s</td></tr>" % ("".join(_cell(result, row, i, None) for i in places), bar))
    return "%s<table><tr>%s<th></th></tr>%s</table>%s" % ("".join(lines), head, "".join(rows), _more(count, len(result)))


def _main_column(result):
    """The column whose bars a tree shows: the first total."""
    for i, column in enumerate(result.schema):
        if column.name.startswith("total_"):
            return i
    return next((i for i, column in enumerate(result.schema) if column.type in ("int", "real")), None)


def _line(result, row, place, largest):
    name = html.escape(str(result._native.row(row)[0]))
    if place is None:
        return name
    value = result._native.row(row)[place] or 0
    bar = '<span class="b" style="width:%.2fem"></span>' % (20 * value / largest) if largest > 0 else ""
    return '%s<span class="v">%s</span>%s' % (name, html.escape(result._native.show(row, place)), bar)


def _tree(result):
    """Nested details; the first two levels are open."""
    count = min(len(result), TREE_ROWS_MAX)
    depths = result.depths
    place = _main_column(result)
    largest = max((value or 0 for value in result.column(result.columns[place])[:count]), default=0) if place is not None else 0
    parts, open_levels = [], []
    for row in range(count):
        depth = depths[row]
        while open_levels and open_levels[-1] >= depth:
            parts.append("</details>")
            open_levels.pop()
        line = _line(result, row, place, largest)
        if row + 1 < count and depths[row + 1] > depth:
            parts.append("<details%s><summary>%s</summary>" % (" open" if depth < 2 else "", line))
            open_levels.append(depth)
        else:
            parts.append('<div class="leaf">%s</div>' % line)
    parts.extend("</details>" for _ in open_levels)
    return "".join(parts) + _more(count, len(result))


def _steps(result):
    """A bar per step, as long as the step, of its phases where they are known."""
    count = min(len(result), ROWS_MAX)
    rows = result[:count]
    longest = max(row.duration_ns or 0 for row in rows)
    if longest <= 0:
        return ""
    phases = [(name, title, colour) for name, title, colour in _PHASES
              if name in result.columns and any(row[name] for row in rows)]
    lines = []
    for number, row in enumerate(rows):
        pieces = [(row[name] or 0, title, colour) for name, title, colour in phases]
        if not any(value for value, _, _ in pieces):
            pieces = [(row.duration_ns or 0, "step", "#9ecae1")]
        bars = "".join('<i style="width:%.3f%%;background:%s" title="%s"></i>' % (100 * value / longest, colour, title)
                       for value, title, colour in pieces if value > 0)
        lines.append('<tr><td>%s</td><td>%s</td><td class="t" style="width:30em">%s</td></tr>'
                     % (row.step, html.escape(result._native.show(number, result.columns.index("duration_ns"))), bars))
    legend = "".join('<i style="width:1em;background:%s"></i> %s ' % (colour, title) for _, title, colour in phases)
    return "<p>%s</p><table><tr><th>step</th><th>duration</th><th></th></tr>%s</table>" % (legend, "".join(lines))
