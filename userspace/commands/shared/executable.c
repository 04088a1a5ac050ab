#include "userspace/commands/shared/executable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"

#define STATUS_CANNOT_EXECUTE 126
#define STATUS_NOT_FOUND 127

#define DEFAULT_PATH "/bin:/usr/bin" /* glibc's, without PATH */
#define FIRST_LINE_BYTES 256 /* as much of a script as the kernel reads */
#define NESTED_SCRIPTS 5 /* the kernel's limit */

static int executable_check_file(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	if (!S_ISREG(status.st_mode))
		return -EACCES;
	return eaccess(path, X_OK) ? -errno : 0;
}

/* Of a script; "" of what is none, or cannot be read. */
static void executable_read_interpreter(const char *path, char out[static FIRST_LINE_BYTES])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char line[FIRST_LINE_BYTES];
	ssize_t bytes = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	char *name;

	out[0] = '\0';
	if (bytes < 2 || line[0] != '#' || line[1] != '!')
		return;
	line[bytes] = '\0';
	line[strcspn(line, "\n")] = '\0';
	name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t")] = '\0';
	memcpy(out, name, strlen(name) + 1);
}

/* culprit: the file that the error is of, where it is not the command's own. */
static int executable_check_script(const char *path, char culprit[static FIRST_LINE_BYTES])
{
	int r = executable_check_file(path);

	for (int i = 0; i < NESTED_SCRIPTS && !r; i++) {
		char interpreter[FIRST_LINE_BYTES];

		executable_read_interpreter(path, interpreter);
		if (!interpreter[0])
			break;
		memcpy(culprit, interpreter, sizeof(interpreter));
		path = culprit;
		r = executable_check_file(path);
	}
	return r;
}

/* As execvp() goes through PATH: what is not there, or not for us, may be in a later folder. path: where it is. */
static int executable_check_on_path(const char *command, char culprit[static FIRST_LINE_BYTES],
				    char path[static PATH_MAX])
{
	const char *folder = getenv("PATH");
	bool denied = false;
	const char *end;

	for (folder = folder ? folder : DEFAULT_PATH;; folder = end + 1) {
		int r, length;

		end = strchrnul(folder, ':');
		length = (int)(end - folder);
		/* An empty one is the working directory. */
		r = snprintf(path, PATH_MAX, "%.*s%s%s", length, folder, length ? "/" : "",
			     command);
		r = r < PATH_MAX ? executable_check_script(path, culprit) : -ENAMETOOLONG;
		if (!r)
			return 0;
		denied = denied || r == -EACCES || r == -EISDIR;
		if (!*end)
			return denied ? -EACCES : -ENOENT;
	}
}

static int executable_find(const char *command, char culprit[static FIRST_LINE_BYTES],
			   char path[static PATH_MAX])
{
	if (!strchr(command, '/'))
		return command[0] ? executable_check_on_path(command, culprit, path) : -ENOENT;
	if (snprintf(path, PATH_MAX, "%s", command) >= PATH_MAX)
		return -ENAMETOOLONG;
	return executable_check_script(command, culprit);
}

int rls_executable_image(const char *command, char path[static PATH_MAX])
{
	char interpreter[FIRST_LINE_BYTES] = "";
	int r = executable_find(command, interpreter, path);

	if (!r && interpreter[0])
		memcpy(path, interpreter, sizeof(interpreter));
	return r;
}

int rls_executable_check(const char *command)
{
	char culprit[FIRST_LINE_BYTES] = "", path[PATH_MAX];
	int r = executable_find(command, culprit, path);

	if (r && culprit[0])
		return rls_error_r(r, "cannot run %s: its interpreter %s: %s", command, culprit,
				   strerror(-r));
	if (r)
		return rls_error_r(r, "cannot run %s: %s", command, strerror(-r));
	return 0;
}

int rls_executable_status(int error)
{
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
}
