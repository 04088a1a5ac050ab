/* Inside the server: what its thread (server.c) and its answers (answers.c) share. */
#ifndef RLS_SERVER_PRIVATE_H
#define RLS_SERVER_PRIVATE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "userspace/metrics/http/accounts.h"
#include "userspace/metrics/http/page_store.h"

enum rls_answer {
	RLS_ANSWER_HEALTHY,
	RLS_ANSWER_STALE,
	RLS_ANSWER_EMPTY, /* no page yet */
	RLS_ANSWER_NOT_FOUND,
	RLS_ANSWER_NOT_ALLOWED,
	RLS_ANSWER_UNAUTHORIZED,
	RLS_ANSWER_BUSY,
	RLS_ANSWER_MAX,
};

/* The answers that never change, made once. */
struct rls_answers {
	struct MHD_Response *responses[RLS_ANSWER_MAX];
	struct rls_page_store *store; /* borrowed */
	struct rls_accounts *accounts; /* borrowed; NULL: everybody may read */
};

/* One connection's state, for as long as it is open. */
struct rls_connection {
	int fd;
	uint64_t since_ns;
	bool answered; /* an answer has been queued */
	bool served; /* and it is the page, or good health */
};

/* 0 or -ENOMEM. */
int rls_answers_make(struct rls_answers *answers);
void rls_answers_clear(struct rls_answers *answers);

/* Queues the answer to a request whose head has been read. */
enum MHD_Result rls_answers_queue(const struct rls_answers *answers,
				  struct MHD_Connection *connection, struct rls_connection *state,
				  const char *url, const char *method);

#endif
