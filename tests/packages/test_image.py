"""The image serves by both conventions, as another user than root, with a root folder that cannot be written."""

import json
import subprocess
import tarfile

import pytest

from penstock_testing import DEMO_MODEL, Process
from places import Started

LIMIT_MB = 100
# A network of its own, where any user may have port 80, as container engines set it up.
OWN_NETWORK = ["unshare", "--net", "sh", "-c",
               'ip link set lo up && echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start && exec "$@"', "sh"]


@pytest.fixture(scope="module")
def image(package, sandbox, tmp_path_factory):
    """(root folder, configuration) of the unpacked image."""
    folder = tmp_path_factory.mktemp("image")
    with tarfile.open(package("-oci.tar")) as archive:
        archive.extractall(folder / "layout")

    def blob(descriptor):
        return folder / "layout" / "blobs" / descriptor["digest"].replace(":", "/")
    index = json.loads((folder / "layout" / "index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]).read_text())
    root = folder / "root"
    root.mkdir()
    for layer in manifest["layers"]:
        subprocess.run(["tar", "-xzf", blob(layer), "-C", root, "--same-owner", "-p"], check=True, timeout=600)
    return root, json.loads(blob(manifest["config"]).read_text())["config"]


def container(image, *arguments, variables=(), binds=()):
    """The words that start the image's entry point with a root folder that cannot be written."""
    root, config = image
    user, group = config["User"].split(":")
    words = ["bwrap", "--die-with-parent", "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev",
             "--tmpfs", "/tmp", "--unshare-user", "--uid", user, "--gid", group, "--clearenv",
             "--chdir", config["WorkingDir"]]
    for bind in binds:
        words += ["--ro-bind", *map(str, bind)]
    for variable in [*config["Env"], *variables]:
        words += ["--setenv", *variable.split("=", 1)]
    return [*words, *config["Entrypoint"], *arguments]


def with_model_folder(image):
    """The image with an empty /opt/ml/model: engines make the folder of a mount, bwrap cannot."""
    (image[0] / "opt" / "ml" / "model").mkdir(parents=True, exist_ok=True)
    return {"binds": [(DEMO_MODEL, "/opt/ml/model")]}


def test_the_image_is_small_and_its_user_is_not_root(package, image):
    assert package("-oci.tar").stat().st_size <= LIMIT_MB * 10**6
    assert image[1]["User"].split(":")[0] not in ("0", "root", "")


def test_a_model_folder_is_served_as_djl_serving_does(image):
    with Started(container(image, "--port", "0", **with_model_folder(image))) as server:
        answer = server.ask("/invocations", {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 5}})
        assert answer["generated_text"]


def test_the_arguments_of_tgi_serve_generate(image):
    words = container(image, "--model-id", "/opt/penstock/share/penstock/demo-model", "--port", "0")
    with Started(words) as server:
        assert server.generate()


@pytest.mark.parametrize("arguments,port", [
    (["serve"], 8080), ([], 8080), (["--model-id", "/opt/penstock/share/penstock/demo-model"], 80)])
def test_each_convention_has_its_port(image, arguments, port):
    words = [*OWN_NETWORK, *container(image, *arguments, **with_model_folder(image))]
    with Started(words) as server:
        assert server.port == port


def test_nothing_but_data_and_tmp_can_be_written(image):
    script = "for f in / /opt/penstock /etc /bin; do (: >$f/x) && echo written; done; : >/tmp/x && echo tmp"
    root, _ = image
    words = container(image)
    words = words[:words.index("/opt/penstock/entrypoint")]
    done = subprocess.run([*words, "/bin/sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "tmp\n", (root, done.stdout, done.stderr)


def test_a_start_without_a_model_says_so(image):
    process = Process(container(image))
    assert process.wait_exit() == 2
    assert "--model-id" in process.output()
