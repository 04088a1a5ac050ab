#include "userspace/commands/present_options.h"

#include <errno.h>

/* The settings' own numbers, moved out of the way of other options'. */
#define KEY_FIRST 1024

static const struct argp_option option_table[] = {
	{ "listen", KEY_FIRST + RLS_SETTING_LISTEN, "ADDRESS:PORT|none", 0,
	  "Serve the metrics there (default 127.0.0.1:9435; [ADDRESS]:PORT for IPv6)", 2 },
	{ "tls-cert", KEY_FIRST + RLS_SETTING_TLS_CERT, "FILE", 0,
	  "Serve over TLS with this certificate (PEM, with what it is signed by)", 2 },
	{ "tls-key", KEY_FIRST + RLS_SETTING_TLS_KEY, "FILE", 0, "The certificate's key (PEM)", 2 },
	{ "auth-file", KEY_FIRST + RLS_SETTING_AUTH_FILE, "FILE", 0,
	  "Ask for a user and password of FILE: lines USER:HASH, as `htpasswd -B` makes them", 2 },
	{ "textfile", KEY_FIRST + RLS_SETTING_TEXTFILE, "DIR", 0,
	  "Write the metrics to DIR/rlscope.prom as well, for node_exporter", 2 },
	{ "interval", KEY_FIRST + RLS_SETTING_INTERVAL, "SECONDS", 0,
	  "Take new figures every SECONDS (default 5)", 2 },
	{ 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	if (key < KEY_FIRST || key >= KEY_FIRST + RLS_SETTING_MAX)
		return ARGP_ERR_UNKNOWN;
	return -rls_monitor_config_set(state->input, (enum rls_monitor_setting)(key - KEY_FIRST),
				       argument);
}

const struct argp rls_present_argp = { .options = option_table, .parser = parse_option };
