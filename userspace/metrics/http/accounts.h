/* Accounts: who may read the metrics, from a file of lines "USER:HASH" ('#' comments), with
 * HASH as crypt(3) makes it: yescrypt, bcrypt, SHA-512, ... as in `htpasswd -B`,
 * `mkpasswd`, `openssl passwd -6`.
 *
 * Hashes are slow by design. So a password that was right is remembered, and only a few others
 * are checked each second, for all clients together: a flood of attempts costs the host little.
 * A wrong user takes as long as a wrong password.
 */
#ifndef RLS_ACCOUNTS_H
#define RLS_ACCOUNTS_H

#include <stdint.h>

#define RLS_ACCOUNTS_TRIES_PER_SECOND 5

struct rls_accounts;

enum rls_accounts_verdict {
	RLS_ACCOUNTS_RIGHT,
	RLS_ACCOUNTS_WRONG,
	RLS_ACCOUNTS_BUSY, /* too many were tried just now: ask again later */
};

/* 0, or -errno, said on stderr: a file that cannot be read, is empty, or has a line that is none. */
int rls_accounts_read(const char *path, struct rls_accounts **out);
/* NULL is fine. */
void rls_accounts_free(struct rls_accounts *accounts);

/* now_ns: CLOCK_MONOTONIC. One thread at a time. */
enum rls_accounts_verdict rls_accounts_check(struct rls_accounts *accounts, const char *user,
					     const char *password, uint64_t now_ns);

#endif
