"""tfprof's four views of a store (tfprof_store.py), worked out the slow way: what is accounted, started at, shown, in which order.

`View` holds the displayed tree or list; its text is tfprof_text.py's. Recursive, so for small models only.
"""
import os
import re

from tfprof_store import METRICS, ROOT, TIMES, BYTES, raw, signed

SCOPE_PARENT, GRAPH_PARENT = "_kTFScopeParent", "_TFGraphParent"
BAD_REGEXES = {"(", "*a", "a**", "[b", "(?=a)", "a++", "\\1", "(?<n>a", "\\", "a{3,2}"}


def matches(regex, text):
    """A text that was cut inside of a character is no UTF-8, and nothing matches it; nor does a bad expression match anything."""
    if regex in BAD_REGEXES or any("\ud800" <= c <= "\udfff" for c in text):
        return False
    try:
        return re.fullmatch(regex, text, re.ASCII) is not None
    except re.error:
        return False


def any_match(regexes, text):
    return any(matches(regex, text) for regex in regexes)


def all_or_match(regexes, text):
    return regexes == [".*"] or any_match(regexes, text)


class Row:
    """A node of a view. own and total have the metrics, and how many nodes are defined ("defined")."""

    def __init__(self, name, node=None, types=()):
        self.name, self.node, self.types = name, node, set(types)
        self.children, self.shown = [], []
        self.attached = []          # nodes that match, of code and op rows
        self.accounted = False
        self.frame = None
        self.own = dict.fromkeys(METRICS + ["defined"], 0)
        self.total = dict(self.own)

    def add(self, other):
        for key in self.total:
            self.total[key] = signed(self.total[key] + other[key])

    def take_own(self, nodes, step):
        for metric in METRICS:
            self.own[metric] = signed(sum(node.metric(metric, step) for node in nodes))
        self.own["defined"] = 1


class View:
    def __init__(self, store, options):
        self.store, self.options = store, options
        self.said = []
        self.root = Row(ROOT, types=[SCOPE_PARENT])

    def accounted(self, types):
        regexes = self.options["account_type_regexes"]
        return regexes == [".*"] or any(any_match(regexes, t) for t in sorted(types))

    def sort(self, rows):
        key = self.options["order_by"]
        if key == "":
            return rows
        if key == "occurrence" and isinstance(self, (Op, Code)):
            return sorted(rows, key=lambda r: -len(r.attached))
        if key in METRICS:
            return sorted(rows, key=lambda r: -r.total[key])
        return sorted(rows, key=lambda r: (r.name != ROOT, raw(r.name)))

    def enough(self, row, own):
        """The minimums of times and bytes are asked of totals; `own` tells whose numbers the others are."""
        o = self.options
        if any(row.total[m] < o["min_" + m] for m in BYTES + TIMES):
            return False
        return all(own[m] >= o["min_" + m] for m in ("params", "float_ops"))

    def named(self, row):
        o = self.options
        return all_or_match(o["show_name_regexes"], row.name) and not any_match(o["hide_name_regexes"], row.name)


class Tree(View):
    """What scope, graph and code have in common: from the accounted tree to the displayed one."""

    def start(self, rows, visited=None):
        found = []
        for row in rows:
            if visited is not None:
                if row.name in visited:
                    continue
                visited.add(row.name)
            if any_match(self.options["start_name_regexes"], row.name):
                found.append(row)
            else:
                found += self.start(row.children, visited)
        return found

    def build(self):
        self.root.children = self.account()
        for child in self.root.children:
            self.root.add(child.total)
        if self.options["start_name_regexes"] != [".*"]:
            self.root.children = self.start(self.root.children, self.fresh())
        self.visited = self.fresh()
        self.show([self.root], 1)
        return self

    def fresh(self):
        return None

    def visible(self, row, depth):
        if row is self.root:
            return True
        return self.enough(row, row.own) and row.own["run"] >= self.options["min_occurrence"] and \
            depth <= self.options["max_depth"] and self.named(row)

    def show(self, rows, depth):
        shown = []
        for row in rows:
            if self.visited is not None:
                if row.name in self.visited:
                    continue
                self.visited.add(row.name)
            visible = self.visible(row, depth)
            below = []
            if depth <= self.options["max_depth"] and not any_match(self.options["trim_name_regexes"], row.name):
                below = self.show(row.children, depth + 1)
            if not visible:
                shown += below
                continue
            row.shown = self.sort(below)
            if self.options["account_displayed_op_only"]:
                self.count_displayed(row)
            shown.append(row)
        return shown

    def count_displayed(self, row):
        row.total = dict(row.own) if row.accounted else dict.fromkeys(row.own, 0)
        for child in row.shown:
            row.add(child.total)


class Scope(Tree):
    def account(self):
        rows = {}
        for node in self.store.in_order():
            rows[node.name] = Row(node.name, node, node.types)
        for name in list(rows):
            at = name.find("/")
            while at >= 0:
                rows.setdefault(name[:at], Row(name[:at], None, [SCOPE_PARENT]))
                at = name.find("/", at + 1)
        top = []
        for name in sorted(rows, key=raw):
            parent = name.rfind("/")
            (top if parent < 0 else rows[name[:parent]].children).append(rows[name])
        return [row for row in top if self.keep(row)]

    def keep(self, row):
        row.children = [child for child in row.children if self.keep(child)]
        row.accounted = self.accounted(row.types)
        row.take_own([row.node] if row.node else [], self.options["step"])
        if row.accounted:
            row.add(row.own)
        for child in row.children:
            row.add(child.total)
        return row.accounted or bool(row.children)


class Graph(Tree):
    def fresh(self):
        return set()

    def account(self):
        self.root.types = {GRAPH_PARENT}
        used = {name for node in self.store.in_order() for name in node.inputs if name in self.store.nodes}
        self.counted = set()
        return self.collect([node for node in self.store.in_order() if node.name not in used])

    def collect(self, nodes):
        rows = []
        for node in nodes:
            if node.name in self.counted:
                continue
            self.counted.add(node.name)
            below = self.collect([self.store.nodes[n] for n in node.inputs if n in self.store.nodes])
            if not self.accounted(node.types):
                rows += below
                continue
            row = Row(node.name, node, node.types)
            row.accounted, row.children = True, below
            row.take_own([node], self.options["step"])
            row.add(row.own)
            for child in below:
                row.add(child.total)
            rows.append(row)
        return rows

    def count_displayed(self, row):
        row.accounted = row is not self.root
        row.total = dict(row.own)
        row.total["defined"] = 1
        for child in row.shown:
            row.add(child.total)


def base_name(path):
    """Of a URI only the path counts."""
    uri = re.match(r"[a-zA-Z][0-9a-zA-Z.]*://[^/]*(.*)", path, re.ASCII | re.DOTALL)
    return os.path.basename(uri.group(1) if uri else path)


def label(frame):
    """A function's name is cut by bytes."""
    function = frame[2].encode()
    function = function if len(function) < 20 else function[:17] + b"..."
    return "%s:%d:%s" % (base_name(frame[0]), frame[1], function.decode(errors="surrogateescape"))


def forward_name(name):
    """None when it is no gradient. May be empty: the end of "gradients/" may come after the first "_grad/"."""
    begin, end = name.find("gradients/"), name.find("_grad/")
    if begin < 0 or end < 0:
        return None
    begin += len("gradients/")
    if begin == end:
        return None
    return name[begin:end] if end > begin else name[begin:]


def has_lines(store):
    """The original crashes when its op log has no frame of its own; ours says that there is no code."""
    return store.has_traces and any(n.frames and forward_name(n.name) is None for n in store.nodes.values())


class Code(Tree):
    def account(self):
        forwards, gradients = [], {}
        for node in self.store.in_order():
            if not node.frames:
                continue
            forward = forward_name(node.name)
            if forward is not None:
                gradients.setdefault(forward, []).append(node)
            else:
                forwards.append(node)
        self.members = {}                       # id of a row: its nodes
        named = {node.name: node for node in forwards}
        for node in forwards:
            self.insert(node.frames, "", [node])
        missing = 0
        for forward in sorted(gradients, key=raw):
            if forward in named:
                self.insert(named[forward].frames, " (gradient)", gradients[forward])
            else:
                missing += 1
        if missing:
            self.said.append("%d gradient nodes not accounted" % missing)
        complete = self.root.children
        return [row for row in complete if self.keep(row)]

    def insert(self, frames, suffix, nodes):
        row = self.root
        for frame in frames:
            name = label(frame) + suffix
            child = next((c for c in row.children if c.name == name), None)
            if not child:
                child = Row(name)
                child.frame = (frame[0], frame[1], frame[2] + suffix, frame[3])
                row.children.append(child)
            row = child
        self.members.setdefault(id(row), []).extend(nodes)

    def keep(self, row):
        row.every = list(row.children)          # the complete tree, for pprof
        row.children = [child for child in row.children if self.keep(child)]
        row.attached = [n for n in self.members.get(id(row), []) if self.accounted(n.types)]
        row.attached.sort(key=lambda n: raw(n.name))
        row.accounted = bool(row.attached) or self.options["account_type_regexes"] == [".*"]
        row.take_own(row.attached, self.options["step"])
        row.add(row.own)
        for child in row.children:
            row.add(child.total)
        return row.accounted or bool(row.children)

    def visible(self, row, depth):
        if row is self.root:
            return True
        return self.enough(row, row.total) and depth <= self.options["max_depth"] and self.named(row)

    def show(self, rows, depth):
        """A trimmed line goes with all below it."""
        stay = [row for row in rows if row is self.root or
                (depth <= self.options["max_depth"] and not any_match(self.options["trim_name_regexes"], row.name))]
        return super().show(stay, depth)

    def count_displayed(self, row):
        pass


class Op(View):
    def build(self):
        step, o = self.options["step"], self.options
        by_op = {}
        for node in self.store.in_order():
            by_op.setdefault(node.op, []).append(node)
        rows = []
        for op in sorted(by_op, key=raw):
            row = Row(op)
            row.attached = [n for n in by_op[op] if self.accounted(n.types)]
            row.accounted = bool(row.attached) or o["account_type_regexes"] == [".*"]
            row.take_own(row.attached, step)
            row.total = dict(row.own)
            rows.append(row)
        rows = [row for row in self.sort(rows) if row.accounted]
        self.add_up(rows)
        self.rows = self.shown(rows)
        if o["account_displayed_op_only"]:
            self.add_up(self.rows)
        return self

    def add_up(self, rows):
        below = dict.fromkeys(self.root.total, 0)
        for row in reversed(rows):
            row.total = dict(row.own)
            row.add(below)
            below = row.total
        self.root.total = dict(below)

    def shown(self, rows):
        o, shown = self.options, []
        start = 0
        if o["start_name_regexes"] not in ([".*"], []):
            start = next((i for i, r in enumerate(rows) if any_match(o["start_name_regexes"], r.name)), len(rows))
        for position, row in enumerate(rows[start:]):
            if position > o["max_depth"] or any_match(o["trim_name_regexes"], row.name):
                break
            if self.enough(row, row.total) and len(row.attached) >= o["min_occurrence"] & (1 << 64) - 1 and self.named(row):
                shown.append(row)
        return shown


VIEWS = {"scope": Scope, "graph": Graph, "code": Code, "op": Op}
