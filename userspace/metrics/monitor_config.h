/* Monitor configuration: where figures are shown, from a file or the command line.
 *
 *     # lines of a word and its value; '#' comments
 *     listen 127.0.0.1:9435          or none
 *     tls-cert /etc/rlscope-bpf/cert.pem
 *     tls-key /etc/rlscope-bpf/key.pem
 *     auth-file /etc/rlscope-bpf/users
 *     textfile /var/lib/prometheus/node-exporter
 *     interval 5
 *     simulator|backend|native GLOB[:SYMBOLGLOB]      as in a file of roles
 *
 * Each word but the roles' may be there once.
 */
#ifndef RLS_MONITOR_CONFIG_H
#define RLS_MONITOR_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/discover/roles/roles.h"

#define RLS_MONITOR_INTERVAL_SECONDS 5
#define RLS_MONITOR_INTERVAL_SECONDS_MAX 3600

enum rls_monitor_setting {
	RLS_SETTING_LISTEN,
	RLS_SETTING_TLS_CERT,
	RLS_SETTING_TLS_KEY,
	RLS_SETTING_AUTH_FILE,
	RLS_SETTING_TEXTFILE,
	RLS_SETTING_INTERVAL, /* seconds, 0.1 to an hour */
	RLS_SETTING_MAX,
};

struct rls_monitor_role {
	enum rls_role role;
	char *pattern;
};

/* Zeroed is empty. */
struct rls_monitor_config {
	char *settings[RLS_SETTING_MAX]; /* NULL: not said */
	struct rls_monitor_role *roles;
	size_t role_count, role_room;
};

void rls_monitor_config_clear(struct rls_monitor_config *config);

/* Checks the value, as far as text tells, and replaces what was said before. 0; -EINVAL, said on
 * stderr as of an option of the command line; -ENOMEM. */
int rls_monitor_config_set(struct rls_monitor_config *config, enum rls_monitor_setting setting,
			   const char *value);

/* The text of a file; path is for messages. 0 and *out, to be cleared, or -errno, said on stderr
 * with the line's number. */
int rls_monitor_config_parse(char *text, const char *path, struct rls_monitor_config *out);
/* The same of the file itself. */
int rls_monitor_config_read(const char *path, struct rls_monitor_config *out);

/* What `over` says replaces what config says; its roles come first. 0 or -ENOMEM. */
int rls_monitor_config_overlay(struct rls_monitor_config *config,
			       const struct rls_monitor_config *over);

/* The setting's value, or the default: "127.0.0.1:9435", 5 s, NULL else. "none" to listen on is
 * NULL. */
const char *rls_monitor_config_text(const struct rls_monitor_config *config,
				    enum rls_monitor_setting setting);
uint64_t rls_monitor_config_interval_ns(const struct rls_monitor_config *config);

/* Adds the roles. 0 or -ENOMEM. */
int rls_monitor_config_add_roles(const struct rls_monitor_config *config, struct rls_roles *roles);

#endif
