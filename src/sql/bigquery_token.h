/*
 * bigquery_token.h: splits SQL into tokens, for bigquery.c. DuckDB and BigQuery differ in their texts: in BigQuery a
 * backslash escapes, and three quotes open a text that may contain single ones.
 */
#ifndef SQL_BIGQUERY_TOKEN_H
#define SQL_BIGQUERY_TOKEN_H

#include "base/buf.h"

enum token_kind {
	TOKEN_BLANK, /* blanks and comments */
	TOKEN_WORD,
	TOKEN_NUMBER,
	TOKEN_QUOTED, /* 'text', "name", $$text$$ */
	TOKEN_RAW,    /* r"text" or r'text' of BigQuery, in which backslashes do not escape */
	TOKEN_BACKTICK,
	TOKEN_OTHER /* any other single character */
};

struct token {
	enum token_kind kind;
	struct str text;
};

/* The first token of a text, which must not be empty; `bigquery`: texts have BigQuery's form. */
struct token token_read(struct str s, bool bigquery);

/* The length of the first statement, its semicolon included. *bigquery says whether it is one of BigQuery: it has a
 * name in back-ticks, a raw text in double quotes, or the comment #standardSQL. */
size_t token_statement(struct str s, bool *bigquery);

/* Appends the content of a BigQuery text (TOKEN_QUOTED or TOKEN_RAW) as a DuckDB text. */
void token_put_text(struct buf *to, const struct token *token);

#endif
