/** The assistant's Markdown, sanitised: no script, no style, no picture, nothing from elsewhere. */

import DOMPurify from "dompurify";
import { Marked } from "marked";
import { useLayoutEffect, useRef } from "preact/hooks";

// HTML and pictures come out as the text that they are written as, or as what it says of them.
const marked = new Marked({
  async: false,
  renderer: { html: ({ raw }) => escaped(raw), image: ({ text }) => escaped(text) },
});

const ALLOWED_TAGS = [
  ..."a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s strong".split(" "),
  ..."table tbody td th thead tr ul".split(" "),
];
const ALLOWED_ATTR = ["href", "start", "title"];

interface MarkdownProps {
  readonly text: string;
  /** More follows: it is read out once it is whole. */
  readonly growing: boolean;
}

export function Markdown({ text, growing }: MarkdownProps) {
  const place = useRef<HTMLDivElement>(null);
  // Before the next painting, so that a growing answer never blinks.
  useLayoutEffect(() => place.current?.replaceChildren(rendered(text)), [text]);
  return <div class="markdown" dir="auto" aria-busy={growing} ref={place} />;
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

function rendered(text: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(marked.parse(text) as string, {
    ALLOWED_TAGS,
    ALLOWED_ATTR,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  // What may be wider than the column scrolls by itself, also by keyboard.
  for (const wide of fragment.querySelectorAll("pre")) wide.tabIndex = 0;
  return fragment;
}
