"""Trees of files that become packages: installing, stripping, and the bytes of archives."""
import gzip
import io
import os
import shutil
import subprocess
import tarfile


def run(*command, **options):
    """Output of a command, which must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode:
        raise RuntimeError("%s: %s" % (command[0], done.stderr.strip() or "status %d" % done.returncode))
    return done.stdout


def install(build, folder, prefix="/usr"):
    """What `cmake --install` installs, below FOLDER as for PREFIX, without symbols for debuggers."""
    run("cmake", "--install", build, "--prefix", prefix, env=dict(os.environ, DESTDIR=folder))
    for path in files_of(folder):
        if is_elf(path):
            run("strip", "--strip-unneeded", "--remove-section=.comment", path)


def is_elf(path):
    if os.path.islink(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def files_of(folder):
    """Every file and link below it, in one order everywhere."""
    return sorted(os.path.join(base, name) for base, folders, names in os.walk(folder)
                  for name in names + [f for f in folders if os.path.islink(os.path.join(base, f))])


def copy(source, target, mode=None):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)
    if mode is not None:
        os.chmod(target, mode)


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def compress(path):
    """Replaces a file by its .gz, which has neither name nor time in it."""
    with open(path, "rb") as file:
        data = gzip.compress(file.read(), 9, mtime=0)
    with open(path + ".gz", "wb") as file:
        file.write(data)
    os.unlink(path)


def fix_modes(folder, epoch):
    """Modes and times that do not depend on who builds when."""
    for base, folders, names in os.walk(folder, topdown=False):
        for name in names:
            path = os.path.join(base, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)
            os.utime(path, (epoch, epoch), follow_symlinks=False)
        os.chmod(base, 0o755)
        os.utime(base, (epoch, epoch))


def tar_bytes(folder, epoch):
    """FOLDER as a tar archive of root's files, names sorted."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for base, folders, names in sorted(os.walk(folder)):
            folders.sort()
            members = [base] if base != folder else []
            links = [f for f in folders if os.path.islink(os.path.join(base, f))]
            for path in members + [os.path.join(base, name) for name in sorted(names + links)]:
                info = archive.gettarinfo(path, os.path.relpath(path, folder))
                info.uid = info.gid = 0
                info.uname = info.gname = ""
                info.mtime = epoch
                if info.isreg():
                    with open(path, "rb") as file:
                        archive.addfile(info, file)
                else:
                    archive.addfile(info)
    return buffer.getvalue()
