"""Real clickhouse-server processes for tests and measurements: own folders, own ports, loopback only.

A cluster is some servers on 127.0.0.1, 127.0.0.2, … with the same port for HTTP, as on machines of their own, and
a cluster `two` (of them all) that each knows. Their other ports differ: a server takes 127.0.0.1 with its own port
for itself. They are started by hand and ended by their process id.
"""
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from support import patience, ports

USER, PASSWORD = "pusher", "se cret&<7%"
CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/err.log</errorlog></logger>
  <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{inter}</interserver_http_port>
  <listen_host>{host}</listen_host><max_connections>100</max_connections><keep_alive_timeout>3</keep_alive_timeout>
  <uncompressed_cache_size>0</uncompressed_cache_size><mark_cache_size>67108864</mark_cache_size>
  <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><user_files_path>{folder}/files/</user_files_path>
  <format_schema_path>{folder}/schemas/</format_schema_path>
  <users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
  <default_database>default</default_database><timezone>UTC</timezone>
  <remote_servers><two>{shards}</two></remote_servers>
</yandex>
"""
SHARD = """<shard><replica><host>{host}</host><port>{tcp}</port><user>{user}</user><password>{password}</password>
</replica></shard>"""
USERS = """<?xml version="1.0"?>
<yandex>
  <profiles><default><max_memory_usage>4000000000</max_memory_usage><load_balancing>random</load_balancing>
    <fsync_metadata>0</fsync_metadata></default>
    <readonly><readonly>1</readonly></readonly></profiles>
  <users>
    <default><password></password><networks><ip>127.0.0.0/8</ip></networks><profile>default</profile>
      <quota>default</quota></default>
    <{user}><password>{password}</password><networks><ip>127.0.0.0/8</ip></networks><profile>default</profile>
      <quota>default</quota></{user}>
    <looker><password></password><networks><ip>127.0.0.0/8</ip></networks><profile>readonly</profile>
      <quota>default</quota></looker>
  </users>
  <quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows>
    <read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
</yandex>
"""


def installed():
    return shutil.which("clickhouse-server") is not None


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


class Refused(Exception):
    """What the server answered instead of a result."""


class Server:
    def __init__(self, folder, host, ports, others):
        """`others` is what the cluster is made of: (host, port) each."""
        self.folder, self.host, (self.http, self.tcp, self.inter) = folder, host, ports
        self.process = None
        for name in ("data", "tmp", "files", "schemas"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        values = dict(folder=folder, host=host, http=self.http, tcp=self.tcp, inter=self.inter, user=USER,
                      password=escaped(PASSWORD))
        values["shards"] = "".join(SHARD.format(**{**values, "host": h, "tcp": p}) for h, p in others)
        with open(os.path.join(folder, "config.xml"), "w") as file:
            file.write(CONFIG.format(**values))
        with open(os.path.join(folder, "users.xml"), "w") as file:
            file.write(USERS.format(**values))

    def start(self):
        self.process = subprocess.Popen(
            ["clickhouse-server", f"--config-file={self.folder}/config.xml"], cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        patience.until(self.answers, lambda: f"clickhouse-server does not answer: {self.tail()}", pause=0.1)
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"clickhouse-server ended: {self.tail()}")
        try:
            return self.ask("SELECT 1") == "1\n"
        except OSError:
            return False

    def tail(self):
        try:
            with open(os.path.join(self.folder, "err.log"), errors="replace") as file:
                return file.read()[-2000:]
        except OSError:
            return ""

    def end(self, number=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def kill(self):
        self.end(signal.SIGKILL)

    def ask(self, text, body=None, user=USER, timeout=120, **settings):
        """The answer as text. Settings go into the address."""
        if body is not None:
            settings["query"] = text
        address = f"http://{self.host}:{self.http}/?{urllib.parse.urlencode(settings)}"
        request = urllib.request.Request(address, data=body if body is not None else text.encode())
        request.add_header("X-ClickHouse-User", user)
        request.add_header("X-ClickHouse-Key", PASSWORD if user == USER else "")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise Refused(error.read().decode(errors="replace")) from None

    def url(self, database="default", user=USER):
        return f"clickhouse://{user}@{self.host}:{self.http}/{database}"


class Cluster:
    """`with Cluster(2) as servers:` gives started servers that know each other."""

    def __init__(self, count):
        self.folder = tempfile.mkdtemp(prefix="opwatch-clickhouse-")
        hosts = [f"127.0.0.{i + 1}" for i in range(count)]
        http, *own = ports.reserve(1 + 2 * count, hosts)
        others = list(zip(hosts, own[:count]))
        self.servers = []
        for i, host in enumerate(hosts):
            folder = os.path.join(self.folder, str(i + 1))
            os.makedirs(folder)
            self.servers.append(Server(folder, host, (http, own[i], own[count + i]), others))

    def __enter__(self):
        try:
            for server in self.servers:
                server.start()
        except BaseException:
            self.__exit__()
            raise
        return self.servers

    def __exit__(self, *_):
        for server in self.servers:
            server.end()
        shutil.rmtree(self.folder, ignore_errors=True)
