#include <errno.h>
#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/metrics/http/server_private.h"

#define REALM "rlscope-bpf"

static const struct {
	unsigned int status;
	const char *text, *header, *value;
} answers_of[RLS_ANSWER_MAX] = {
	[RLS_ANSWER_HEALTHY] = {MHD_HTTP_OK, "ok\n", NULL, NULL},
	[RLS_ANSWER_STALE] = {MHD_HTTP_SERVICE_UNAVAILABLE, "stale\n", NULL, NULL},
	[RLS_ANSWER_EMPTY] = {MHD_HTTP_SERVICE_UNAVAILABLE, "no figures yet\n",
			      MHD_HTTP_HEADER_RETRY_AFTER, "1"},
	[RLS_ANSWER_NOT_FOUND] = {MHD_HTTP_NOT_FOUND, "not found: see /metrics\n", NULL, NULL},
	[RLS_ANSWER_NOT_ALLOWED] = {MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n",
				    MHD_HTTP_HEADER_ALLOW, "GET, HEAD"},
	[RLS_ANSWER_UNAUTHORIZED] = {MHD_HTTP_UNAUTHORIZED, "user and password required\n",
				     MHD_HTTP_HEADER_WWW_AUTHENTICATE,
				     "Basic realm=\"" REALM "\", charset=\"UTF-8\""},
	[RLS_ANSWER_BUSY] = {MHD_HTTP_TOO_MANY_REQUESTS, "too many passwords tried\n",
			     MHD_HTTP_HEADER_RETRY_AFTER, "1"},
};

static struct MHD_Response *answers_make(enum rls_answer answer)
{
	const char *text = answers_of[answer].text, *header = answers_of[answer].header;
	struct MHD_Response *response;

	response =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
	if (!response)
		return NULL;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				    "text/plain; charset=utf-8") == MHD_YES &&
	    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES &&
	    (!header ||
	     MHD_add_response_header(response, header, answers_of[answer].value) == MHD_YES))
		return response;
	MHD_destroy_response(response);
	return NULL;
}

int rls_answers_make(struct rls_answers *answers)
{
	for (enum rls_answer answer = 0; answer < RLS_ANSWER_MAX; answer++) {
		answers->responses[answer] = answers_make(answer);
		if (!answers->responses[answer]) {
			rls_answers_clear(answers);
			return -ENOMEM;
		}
	}
	return 0;
}

void rls_answers_clear(struct rls_answers *answers)
{
	for (enum rls_answer answer = 0; answer < RLS_ANSWER_MAX; answer++) {
		if (answers->responses[answer])
			MHD_destroy_response(answers->responses[answer]);
		answers->responses[answer] = NULL;
	}
}

static enum rls_accounts_verdict authorize(const struct rls_answers *answers,
					   struct MHD_Connection *connection)
{
	enum rls_accounts_verdict verdict = RLS_ACCOUNTS_WRONG;
	char *user, *password = NULL;

	if (!answers->accounts)
		return RLS_ACCOUNTS_RIGHT;
	user = MHD_basic_auth_get_username_password(connection, &password);
	if (user && password)
		verdict = rls_accounts_check(answers->accounts, user, password, rls_monotonic_ns());
	if (password)
		explicit_bzero(password, strlen(password));
	MHD_free(password);
	MHD_free(user);
	return verdict;
}

/* RLS_ANSWER_MAX: the page. */
static enum rls_answer answers_choose(const struct rls_answers *answers,
				      struct MHD_Connection *connection, const char *url,
				      const char *method)
{
	bool metrics = !strcmp(url, "/metrics");

	if (!metrics && strcmp(url, "/healthz"))
		return RLS_ANSWER_NOT_FOUND;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return RLS_ANSWER_NOT_ALLOWED;
	if (!metrics)
		return rls_page_store_is_fresh(answers->store, rls_monotonic_ns())
			       ? RLS_ANSWER_HEALTHY
			       : RLS_ANSWER_STALE;
	switch (authorize(answers, connection)) {
	case RLS_ACCOUNTS_RIGHT:
		return RLS_ANSWER_MAX;
	case RLS_ACCOUNTS_BUSY:
		return RLS_ANSWER_BUSY;
	default:
		return RLS_ANSWER_UNAUTHORIZED;
	}
}

enum MHD_Result rls_answers_queue(const struct rls_answers *answers,
				  struct MHD_Connection *connection, struct rls_connection *state,
				  const char *url, const char *method)
{
	enum rls_answer answer = answers_choose(answers, connection, url, method);

	state->answered = true;
	if (answer == RLS_ANSWER_MAX) {
		if (rls_page_store_queue(answers->store, connection)) {
			state->served = true;
			return MHD_YES;
		}
		answer = RLS_ANSWER_EMPTY;
	}
	state->served = answer == RLS_ANSWER_HEALTHY;
	return MHD_queue_response(connection, answers_of[answer].status,
				  answers->responses[answer]);
}
