#include "userspace/metrics/http/accounts.h"

#include <crypt.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/base/log.h"
#include "userspace/metrics/http/small_file.h"

#define SECOND_NS UINT64_C(1000000000)
#define TRY_NS (SECOND_NS / RLS_ACCOUNTS_TRIES_PER_SECOND)

struct account {
	char *user, *hash;
	char *proven; /* the password that was right; NULL before */
};

struct rls_accounts {
	struct account *accounts;
	size_t count, room;
	uint64_t free_at_ns; /* tries are spent up to here */
	struct crypt_data crypt; /* too large for a stack */
};

static void free_secret(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void rls_accounts_free(struct rls_accounts *accounts)
{
	if (!accounts)
		return;
	for (size_t i = 0; i < accounts->count; i++) {
		free(accounts->accounts[i].user);
		free_secret(accounts->accounts[i].hash);
		free_secret(accounts->accounts[i].proven);
	}
	free(accounts->accounts);
	explicit_bzero(&accounts->crypt, sizeof(accounts->crypt));
	free(accounts);
}

static int add_account(struct rls_accounts *accounts, const char *user, const char *hash)
{
	int r = rls_grow(&accounts->accounts, &accounts->room, accounts->count);
	struct account account = {0};

	if (r)
		return r;
	account.user = strdup(user);
	account.hash = strdup(hash);
	if (!account.user || !account.hash) {
		free(account.user);
		free_secret(account.hash);
		return -ENOMEM;
	}
	accounts->accounts[accounts->count++] = account;
	return 0;
}

/* Legacy methods are weak, yet what the file's owner chose. */
static bool is_hash(const char *text)
{
	int verdict = crypt_checksalt(text);

	return verdict == CRYPT_SALT_OK || verdict == CRYPT_SALT_METHOD_LEGACY;
}

static int parse_line(struct rls_accounts *accounts, char *line, const char *path,
		      unsigned int number)
{
	char *hash;

	line += strspn(line, " \t");
	line[strcspn(line, " \t\r\n")] = '\0';
	if (!*line || *line == '#')
		return 0;
	hash = strchr(line, ':');
	if (!hash || hash == line)
		return rls_error_r(-EINVAL, "%s, line %u: not USER:HASH", path, number);
	*hash++ = '\0';
	if (!is_hash(hash))
		return rls_error_r(-EINVAL, "%s, line %u: not a hash that crypt(3) knows", path,
				   number);
	return add_account(accounts, line, hash);
}

int rls_accounts_read(const char *path, struct rls_accounts **out)
{
	struct rls_accounts *accounts = calloc(1, sizeof(*accounts));
	unsigned int number = 0;
	char *text = NULL, *next;
	int r = accounts ? rls_small_file_read(path, &text) : -ENOMEM;

	next = text;
	while (!r && next) {
		char *line = strsep(&next, "\n");

		r = parse_line(accounts, line, path, ++number);
	}
	free_secret(text);
	if (!r && !accounts->count)
		r = rls_error_r(-EINVAL, "%s names no user: nobody could read the metrics", path);
	if (r) {
		rls_accounts_free(accounts);
		return r;
	}
	*out = accounts;
	return 0;
}

/* As long for any two texts of the same lengths. */
static bool equal(const char *a, const char *b)
{
	size_t length = strlen(a);
	unsigned char differs = strlen(b) != length;

	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)(a[i] ^ (differs ? a[i] + 1 : b[i]));
	return !differs;
}

static bool may_try(struct rls_accounts *accounts, uint64_t now_ns)
{
	if (accounts->free_at_ns + SECOND_NS < now_ns)
		accounts->free_at_ns = now_ns - SECOND_NS;
	if (accounts->free_at_ns > now_ns)
		return false;
	accounts->free_at_ns += TRY_NS;
	return true;
}

enum rls_accounts_verdict rls_accounts_check(struct rls_accounts *accounts, const char *user,
					     const char *password, uint64_t now_ns)
{
	struct account *account = NULL;
	const char *made;
	bool right;

	for (size_t i = 0; i < accounts->count; i++)
		if (equal(accounts->accounts[i].user, user))
			account = &accounts->accounts[i];
	if (account && account->proven && equal(account->proven, password))
		return RLS_ACCOUNTS_RIGHT;
	if (strlen(password) > CRYPT_MAX_PASSPHRASE_SIZE)
		return RLS_ACCOUNTS_WRONG;
	if (!may_try(accounts, now_ns))
		return RLS_ACCOUNTS_BUSY;
	/* Somebody's hash for nobody, so that it takes as long. */
	made = crypt_r(password, account ? account->hash : accounts->accounts->hash,
		       &accounts->crypt);
	right = account && made && made[0] != '*' && equal(account->hash, made);
	explicit_bzero(&accounts->crypt, sizeof(accounts->crypt));
	if (!right)
		return RLS_ACCOUNTS_WRONG;
	free_secret(account->proven);
	account->proven = strdup(password);
	return RLS_ACCOUNTS_RIGHT;
}
