#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/base/private_file.h"

static int enter_folder(void **state)
{
	static char folder[32];

	strcpy(folder, "/tmp/rlscope-test-XXXXXX");
	*state = folder;
	return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int leave_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", (const char *)*state);
	return chdir("/") || system(command) ? -1 : 0;
}

static struct stat status_of(const char *path)
{
	struct stat status;

	assert_int_equal(lstat(path, &status), 0);
	return status;
}

static void is_for_its_owner_only(void **state)
{
	int fd;
	mode_t before = umask(0);

	assert_int_equal(rls_private_file_create("a", &fd), 0);
	umask(before);
	assert_int_equal(status_of("a").st_mode, S_IFREG | 0600);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(status_of("a").st_uid, geteuid());
	close(fd);
}

static void replaces_a_file_that_was_there(void **state)
{
	int other = open("b", O_RDWR | O_CREAT | O_CLOEXEC, 0666), fd;

	assert_int_equal(write(other, "old", 3), 3);
	assert_int_equal(rls_private_file_create("./b", &fd), 0);
	assert_int_equal(write(fd, "secret", 6), 6);
	assert_int_equal(status_of("b").st_mode, S_IFREG | 0600);
	assert_int_equal(lseek(other, 0, SEEK_END), 3); /* they see the old one still */
	close(other);
	close(fd);
}

static void follows_no_link_of_others(void **state)
{
	char inside[128];
	int fd = -7;

	assert_int_equal(symlink("/tmp/rlscope-victim", "link"), 0);
	assert_int_equal(rls_private_file_create("link", &fd), -ELOOP);
	assert_int_equal(access("/tmp/rlscope-victim", F_OK), -1);

	/* A link to a folder: fine in a folder of ours, not where everybody may put one. */
	assert_int_equal(mkdir("real", 0700), 0);
	assert_int_equal(mkdir("open", 0700), 0);
	assert_int_equal(chmod("open", 0777), 0);
	snprintf(inside, sizeof(inside), "%s/real", (const char *)*state);
	assert_int_equal(symlink(inside, "ours"), 0);
	assert_int_equal(symlink(inside, "open/theirs"), 0);
	assert_int_equal(rls_private_file_create("open/theirs/t", &fd), -ELOOP);
	assert_int_equal(access("real/t", F_OK), -1);
	assert_int_equal(fd, -7);
	assert_int_equal(rls_private_file_create("ours//t", &fd), 0);
	assert_int_equal(access("real/t", F_OK), 0);
	close(fd);
}

static void says_why_it_cannot(void **state)
{
	char long_name[5000];
	int fd;

	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(rls_private_file_create("", &fd), -ENOENT);
	assert_int_equal(rls_private_file_create("/", &fd), -EISDIR);
	assert_int_equal(rls_private_file_create("/tmp/", &fd), -EISDIR);
	assert_int_equal(rls_private_file_create("/tmp", &fd), -EISDIR);
	assert_int_equal(rls_private_file_create("/dev/null", &fd), -EEXIST);
	assert_int_equal(rls_private_file_create("/nonexistent/t", &fd), -ENOENT);
	assert_int_equal(rls_private_file_create("/etc/passwd/t", &fd), -ENOTDIR);
	assert_int_equal(rls_private_file_create(long_name, &fd), -ENAMETOOLONG);
}

static void belongs_to_who_called_sudo(void **state)
{
	int fd;

	if (geteuid()) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "2345", 1);
	assert_int_equal(rls_private_file_create("s", &fd), 0);
	close(fd);
	assert_int_equal(status_of("s").st_uid, 1234);
	assert_int_equal(status_of("s").st_gid, 2345);
	setenv("SUDO_UID", "12x", 1);
	assert_int_equal(rls_private_file_create("s", &fd), 0);
	close(fd);
	assert_int_equal(status_of("s").st_uid, 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void leaves_alone_what_is_being_written(void **unused)
{
	int first, second;

	assert_false(rls_private_file_is_busy("t"));
	assert_int_equal(rls_private_file_create("t", &first), 0);
	assert_true(rls_private_file_is_busy("t"));
	assert_int_equal(rls_private_file_create("t", &second), -EBUSY);
	assert_int_equal(write(first, "mine", 4), 4);
	close(first);
	assert_int_equal(status_of("t").st_size, 4);
	assert_false(rls_private_file_is_busy("t"));
	assert_int_equal(rls_private_file_create("t", &second), 0);
	close(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_for_its_owner_only),
		cmocka_unit_test(replaces_a_file_that_was_there),
		cmocka_unit_test(follows_no_link_of_others),
		cmocka_unit_test(says_why_it_cannot),
		cmocka_unit_test(belongs_to_who_called_sudo),
		cmocka_unit_test(leaves_alone_what_is_being_written),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
