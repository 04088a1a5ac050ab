#include "userspace/metrics/monitor_config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/base/config_lines.h"
#include "userspace/base/log.h"
#include "userspace/metrics/http/listen_address.h"
#include "userspace/metrics/http/small_file.h"

static bool is_listen(const char *value)
{
	struct rls_listen_address address;

	return !strcmp(value, "none") || !rls_listen_address_parse(value, &address);
}

static double seconds_of(const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	return end == value || *end || !isfinite(seconds) ? -1 : seconds;
}

static bool is_interval(const char *value)
{
	double seconds = seconds_of(value);

	return seconds >= 0.1 && seconds <= RLS_MONITOR_INTERVAL_SECONDS_MAX;
}

static bool is_path(const char *value)
{
	return *value != '\0';
}

static const struct {
	const char *name;
	bool (*is_good)(const char *value);
	const char *what;
	const char *preset;
} settings_of[RLS_SETTING_MAX] = {
	[RLS_SETTING_LISTEN] = {"listen", is_listen, "ADDRESS:PORT, [ADDRESS]:PORT or none",
				RLS_LISTEN_DEFAULT},
	[RLS_SETTING_TLS_CERT] = {"tls-cert", is_path, "a file", NULL},
	[RLS_SETTING_TLS_KEY] = {"tls-key", is_path, "a file", NULL},
	[RLS_SETTING_AUTH_FILE] = {"auth-file", is_path, "a file", NULL},
	[RLS_SETTING_TEXTFILE] = {"textfile", is_path, "a directory", NULL},
	[RLS_SETTING_INTERVAL] = {"interval", is_interval, "seconds from 0.1 to 3600", NULL},
};

void rls_monitor_config_clear(struct rls_monitor_config *config)
{
	for (size_t i = 0; i < RLS_SETTING_MAX; i++)
		free(config->settings[i]);
	for (size_t i = 0; i < config->role_count; i++)
		free(config->roles[i].pattern);
	free(config->roles);
	*config = (struct rls_monitor_config){0};
}

int rls_monitor_config_set(struct rls_monitor_config *config, enum rls_monitor_setting setting,
			   const char *value)
{
	char *copy;

	if (!settings_of[setting].is_good(value))
		return rls_error_r(-EINVAL, "--%s takes %s, not '%s'", settings_of[setting].name,
				   settings_of[setting].what, value);
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(config->settings[setting]);
	config->settings[setting] = copy;
	return 0;
}

static int append_role(struct rls_monitor_config *config, enum rls_role role, const char *pattern)
{
	char *copy = strdup(pattern);

	if (!copy || rls_grow(&config->roles, &config->role_room, config->role_count)) {
		free(copy);
		return -ENOMEM;
	}
	config->roles[config->role_count++] = (struct rls_monitor_role){role, copy};
	return 0;
}

/* One word, and as rls_roles_add judges it. */
static bool is_pattern(enum rls_role role, const char *pattern)
{
	struct rls_roles *trial;
	int r;

	if (!rls_config_is_word(pattern) || rls_roles_new(&trial))
		return false;
	r = rls_roles_add(trial, role, pattern);
	rls_roles_free(trial);
	return !r;
}

static int take_role(struct rls_monitor_config *config, const struct rls_config_line *line)
{
	enum rls_role role;

	if (rls_role_parse(line->word, &role))
		return rls_error_r(-EINVAL, "%s, line %u: '%s' is no setting", line->path,
				   line->number, line->word);
	if (!is_pattern(role, line->value))
		return rls_error_r(-EINVAL,
				   "%s, line %u: '%s' is not a library pattern: "
				   "GLOB or GLOB:SYMBOLGLOB",
				   line->path, line->number, line->value);
	return append_role(config, role, line->value);
}

static int take_line(void *context, const struct rls_config_line *line)
{
	struct rls_monitor_config *config = context;

	if (!*line->value)
		return rls_error_r(-EINVAL, "%s, line %u: '%s' has no value", line->path,
				   line->number, line->word);
	for (enum rls_monitor_setting i = 0; i < RLS_SETTING_MAX; i++) {
		if (strcmp(line->word, settings_of[i].name))
			continue;
		if (config->settings[i])
			return rls_error_r(-EINVAL, "%s, line %u: %s is there twice", line->path,
					   line->number, line->word);
		if (!settings_of[i].is_good(line->value))
			return rls_error_r(-EINVAL, "%s, line %u: %s takes %s, not '%s'",
					   line->path, line->number, line->word,
					   settings_of[i].what, line->value);
		return rls_monitor_config_set(config, i, line->value);
	}
	return take_role(config, line);
}

int rls_monitor_config_parse(char *text, const char *path, struct rls_monitor_config *out)
{
	struct rls_monitor_config config = {0};
	_cleanup_fclose_ FILE *file = fmemopen(text, strlen(text), "r");
	int r;

	if (!file)
		return -errno;
	r = rls_config_lines_read(file, path, take_line, &config);
	if (r)
		rls_monitor_config_clear(&config);
	else
		*out = config;
	return r;
}

int rls_monitor_config_read(const char *path, struct rls_monitor_config *out)
{
	_cleanup_free_ char *text = NULL;
	int r = rls_small_file_read(path, &text);

	return r ? r : rls_monitor_config_parse(text, path, out);
}

int rls_monitor_config_overlay(struct rls_monitor_config *config,
			       const struct rls_monitor_config *over)
{
	struct rls_monitor_config sum = {0};
	const struct rls_monitor_config *const parts[] = {over, config};
	int r = 0;

	for (size_t p = 0; p < 2; p++) {
		for (enum rls_monitor_setting i = 0; !r && i < RLS_SETTING_MAX; i++)
			if (parts[p]->settings[i] && !sum.settings[i])
				r = rls_monitor_config_set(&sum, i, parts[p]->settings[i]);
		for (size_t i = 0; !r && i < parts[p]->role_count; i++)
			r = append_role(&sum, parts[p]->roles[i].role, parts[p]->roles[i].pattern);
	}
	if (r) {
		rls_monitor_config_clear(&sum);
		return r;
	}
	rls_monitor_config_clear(config);
	*config = sum;
	return 0;
}

const char *rls_monitor_config_text(const struct rls_monitor_config *config,
				    enum rls_monitor_setting setting)
{
	const char *text = config->settings[setting];

	if (!text)
		return settings_of[setting].preset;
	return setting == RLS_SETTING_LISTEN && !strcmp(text, "none") ? NULL : text;
}

uint64_t rls_monitor_config_interval_ns(const struct rls_monitor_config *config)
{
	const char *text = config->settings[RLS_SETTING_INTERVAL];
	double seconds = text ? seconds_of(text) : RLS_MONITOR_INTERVAL_SECONDS;

	return (uint64_t)llround(seconds * 1e9);
}

int rls_monitor_config_add_roles(const struct rls_monitor_config *config, struct rls_roles *roles)
{
	int r = 0;

	for (size_t i = 0; !r && i < config->role_count; i++)
		r = rls_roles_add(roles, config->roles[i].role, config->roles[i].pattern);
	return r;
}
