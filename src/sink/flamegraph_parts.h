/*
 * flamegraph_parts.h: the fixed parts of the flame graph: its style sheet and its script, which adds
 * zoom, search and labels that follow the window's width. Without the script the picture is complete,
 * with the browser's own tooltips.
 */
#ifndef SINK_FLAMEGRAPH_PARTS_H
#define SINK_FLAMEGRAPH_PARTS_H

/* Geometry that both the C code and the script need; the text is monospaced. */
#define FLAME_WIDTH 1180.0    /* of the boxes in pixels, without script */
#define FLAME_MARGIN 10	      /* left and right of them */
#define FLAME_ROW 17	      /* height of a level */
#define FLAME_TOP 92	      /* where the first level starts */
#define FLAME_CHAR_WIDTH 6.63 /* of the 11 px font */
#define FLAME_PAD 3	      /* between box and label */
#define FLAME_THIN 3	      /* boxes narrower than this have no outline */

extern const char flamegraph_style[];
extern const char flamegraph_script[];

#endif
