/* Configuration, addresses and accounts: what is taken, what is refused, and which wins. */
#include <errno.h>
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

#include "userspace/base/log.h"
#include "userspace/metrics/http/accounts.h"
#include "userspace/metrics/http/listen_address.h"
#include "userspace/metrics/monitor_config.h"
#include "userspace/metrics/text_file.h"

#define SECOND_NS UINT64_C(1000000000)

static int parse(const char *text, struct rls_monitor_config *out)
{
	char copy[1024];

	snprintf(copy, sizeof(copy), "%s", text);
	return rls_monitor_config_parse(copy, "conf", out);
}

static void takes_settings(void **state)
{
	struct rls_monitor_config config, given = {0};

	assert_int_equal(parse("# a comment\n\n  listen\t[::1]:9000  # here\r\ntextfile /a b\n"
			       "interval 0.5\nsimulator libsim*.so\nnative x.so:f_*",
			       &config),
			 0);
	assert_string_equal(rls_monitor_config_text(&config, RLS_SETTING_LISTEN), "[::1]:9000");
	assert_string_equal(rls_monitor_config_text(&config, RLS_SETTING_TEXTFILE), "/a b");
	assert_null(rls_monitor_config_text(&config, RLS_SETTING_AUTH_FILE));
	assert_int_equal(rls_monitor_config_interval_ns(&config), SECOND_NS / 2);
	assert_int_equal(config.role_count, 2);
	assert_int_equal(config.roles[1].role, RLS_ROLE_NATIVE);

	assert_int_equal(rls_monitor_config_set(&given, RLS_SETTING_LISTEN, "none"), 0);
	assert_int_equal(rls_monitor_config_overlay(&config, &given), 0);
	assert_null(rls_monitor_config_text(&config, RLS_SETTING_LISTEN));
	assert_string_equal(rls_monitor_config_text(&config, RLS_SETTING_TEXTFILE), "/a b");
	assert_int_equal(config.role_count, 2);
	rls_monitor_config_clear(&config);
	rls_monitor_config_clear(&given);
	assert_string_equal(rls_monitor_config_text(&config, RLS_SETTING_LISTEN), "127.0.0.1:9435");
	assert_int_equal(rls_monitor_config_interval_ns(&config), 5 * SECOND_NS);
}

static void refuses_nonsense(void **state)
{
	static const char *const texts[] = {
		"listen",       "listen ",      "listen 1.2.3.4",
		"interval x",   "interval nan", "interval 0",
		"interval 1e9", "interval -1",  "listen none\nlisten none",
		"simulator :",  "backend a b",  "cuda libcuda.so",
		"Listen none",  "textfile\n",
	};

	rls_log_set_muted(true);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct rls_monitor_config config = {.role_count = 77};

		if (parse(texts[i], &config) != -EINVAL)
			fail_msg("'%s' was taken", texts[i]);
		assert_int_equal(config.role_count, 77);
	}
	rls_log_set_muted(false);
}

static void addresses(void **state)
{
	static const char *const good[] = {"127.0.0.1:0", "localhost:9435", "[::]:65535",
					   "0.0.0.0:1"};
	static const char *const bad[] = {
		"",
		":",
		":1",
		"1.2.3.4:",
		"1.2.3.4:65536",
		"1.2.3.4:-1",
		"1.2.3.4:+1",
		"::1:9435",
		"[::1]",
		"[::1:1",
		"[]:1",
		"[1.2.3.4]:1",
		"example.com:1",
		"1.2.3.4:1x",
		"[::1]x:1",
		"1.2.3.4:99999999999999999999",
		"1234567890123456789012345678901234567890123456:1",
	};
	struct rls_listen_address address;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(rls_listen_address_parse(good[i], &address), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!rls_listen_address_parse(bad[i], &address))
			fail_msg("'%s' was taken", bad[i]);
}

static void accounts_are_checked(void **state)
{
	char path[] = "/tmp/rlscope-accounts-XXXXXX";
	struct rls_accounts *accounts;
	int fd = mkstemp(path), busy = 0;
	FILE *file = fdopen(fd, "w");
	uint64_t now_ns = 100 * SECOND_NS;

	/* openssl passwd -6 -salt rlscope secret */
	fputs("\n# comment\n operator:$6$rlscope$"
	      "8dUs/"
	      "c2MLFO6jXwl0zfmeghSi6gC5rmYCZiCiVMbV5Ev7ZnK7xdZwfhhP.E.6lb0UypdwuQjZMVwI1m5U36zt."
	      "\r\n",
	      file);
	fclose(file);
	assert_int_equal(rls_accounts_read(path, &accounts), 0);
	assert_int_equal(rls_accounts_check(accounts, "nobody", "x", now_ns), RLS_ACCOUNTS_WRONG);
	assert_int_equal(rls_accounts_check(accounts, "operator", "x", now_ns), RLS_ACCOUNTS_WRONG);
	assert_int_equal(rls_accounts_check(accounts, "", "", now_ns), RLS_ACCOUNTS_WRONG);
	for (int i = 0; i < 20; i++)
		busy += rls_accounts_check(accounts, "operator", "guess", now_ns) ==
			RLS_ACCOUNTS_BUSY;
	assert_in_range(busy, 17, 18);
	now_ns += 10 * SECOND_NS;
	assert_int_equal(rls_accounts_check(accounts, "operator", "secret", now_ns),
			 RLS_ACCOUNTS_RIGHT);
	/* Who is known is let in however many guess. */
	for (int i = 0; i < 20; i++) {
		rls_accounts_check(accounts, "operator", "guess", now_ns);
		assert_int_equal(rls_accounts_check(accounts, "operator", "secret", now_ns),
				 RLS_ACCOUNTS_RIGHT);
	}
	now_ns += 10 * SECOND_NS;
	assert_int_equal(rls_accounts_check(accounts, "operator", "guess", now_ns),
			 RLS_ACCOUNTS_WRONG);
	rls_accounts_free(accounts);
	unlink(path);
}

static void text_file_is_replaced(void **state)
{
	char folder[] = "/tmp/rlscope-textfile-XXXXXX", path[128], unfinished[128], text[64];
	struct stat status;
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/" RLS_TEXT_FILE_NAME, folder);
	snprintf(unfinished, sizeof(unfinished), "%s/.rlscope.prom.tmp", folder);
	/* What an enemy or a crash left there is not written into. */
	assert_int_equal(symlink("/nowhere/else", unfinished), 0);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	assert_int_equal(rls_text_file_write(folder, "a 1\n", 4), 0);
	assert_int_equal(rls_text_file_write(folder, "a 2\n", 4), 0);
	assert_int_equal(lstat(path, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(status.st_mode & 07777, 0644);
	assert_int_equal(lstat(unfinished, &status), -1);
	file = fopen(path, "re");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "a 2\n");
	assert_int_equal(rls_text_file_remove(folder), 0);
	assert_int_equal(rls_text_file_remove(folder), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(rls_text_file_write(folder, "", 0), -ENOENT);
	assert_int_equal(rls_text_file_write("/etc/hostname", "", 0), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_settings),
		cmocka_unit_test(refuses_nonsense),
		cmocka_unit_test(addresses),
		cmocka_unit_test(accounts_are_checked),
		cmocka_unit_test(text_file_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
