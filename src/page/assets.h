/*
 * assets.h: the files of the page, compressed by gzip, as cmake/ui.cmake embeds them. Without npm there are none, and
 * the page is not available.
 */
#ifndef PAGE_ASSETS_H
#define PAGE_ASSETS_H

#include <stddef.h>

struct page_asset {
	const char *path; /* "/app.js" */
	const char *type; /* content type */
	const unsigned char *bytes;
	size_t len;
	const char *sha256; /* of the unpacked file, 64 hexadecimal digits */
};

extern const struct page_asset page_assets[];
extern const size_t page_asset_count;

#endif
