/** The conversation: its title, its turns, and the composer. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Composer } from "./composer.js";
import type { Conversation } from "./conversation.js";
import { goOn, LOG } from "./focus.js";
import { useObserved } from "./observable.js";
import { sessions } from "./sessions.js";
import { Title } from "./title.js";
import { TurnView } from "./turn.js";
import { Welcome } from "./welcome.js";

// So near to the end, a reader wants to see what comes.
const NEAR_PX = 120;

export function Chat({ conversation }: { readonly conversation: Conversation }) {
  useObserved(conversation, sessions);
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  // Two clicks come before the first is drawn.
  const begun = useRef(false);
  const { log, toEnd } = useStickyEnd();

  const send = async (text: string): Promise<boolean> => {
    if (begun.current) return false;
    begun.current = true;
    setSending(true);
    setProblem(null);
    try {
      await conversation.send(text);
      toEnd();
      goOn();
      return true;
    } catch (error) {
      setProblem((error as Error).message);
      return false;
    } finally {
      begun.current = false;
      setSending(false);
    }
  };

  const { turns, loading } = conversation;
  return (
    <main class="chat" aria-labelledby="title">
      <Title sessionId={conversation.sessionId} />
      <section
        class="log"
        id={LOG}
        role="log"
        aria-label="Conversation"
        aria-busy={loading}
        ref={log}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
        tabIndex={0}
      >
        <div class="turns">
          {conversation.problem !== null && (
            <p class="note bad" role="alert">
              {conversation.problem}
            </p>
          )}
          {turns.map((turn, index) => (
            <TurnView
              key={turn.attempts[0]?.runId}
              conversation={conversation}
              turn={turn}
              last={index === turns.length - 1}
            />
          ))}
          {!loading && turns.length === 0 && conversation.problem === null && (
            <Welcome disabled={sending} send={(text) => void send(text)} />
          )}
        </div>
      </section>
      <Composer {...{ conversation, send, sending, problem }} />
    </main>
  );
}

/** Keeps the end in view while the content grows, as long as the reader is there. */
function useStickyEnd() {
  const log = useRef<HTMLElement>(null);
  const near = useRef(true);
  const toEnd = () => {
    near.current = true;
    log.current?.scrollTo({ top: log.current.scrollHeight });
  };
  useLayoutEffect(() => {
    const pane = log.current;
    const content = pane?.firstElementChild;
    if (!pane || !content) return;
    const scrolled = () => {
      near.current = pane.scrollHeight - pane.scrollTop - pane.clientHeight < NEAR_PX;
    };
    const growth = new ResizeObserver(() => {
      // An empty conversation is read from its beginning.
      if (near.current && content.querySelector(".turn") !== null) toEnd();
    });
    pane.addEventListener("scroll", scrolled, { passive: true });
    growth.observe(content);
    return () => {
      pane.removeEventListener("scroll", scrolled);
      growth.disconnect();
    };
  }, []);
  return { log, toEnd };
}
