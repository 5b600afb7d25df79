import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { Log } from '#contracts/log.ts';
import type { ShownPreview } from '../store/delivery/preview.ts';
import type { JournaledSends } from '../store/processes/process-records.ts';

/**
 * Records which calls to a platform have started. A part is `sending` in the store a moment before its call starts.
 * After a `kill -9` the journal shows on which side of that moment the process died: parts whose calls hadn't started
 * are sent after all and needn't be reported unknown. It also keeps the platform's id of a preview until the store has
 * it, so that no preview stays next to its answer. It isn't flushed to the disk: the operating system's cache survives
 * the process, and after a crash of the machine the journal doesn't count.
 */
export interface SendJournal {
  begin(partKey: string): void;
  /** The platform has accepted a preview. */
  shown(preview: ShownPreview): void;
  /** Called once the store has the call's result or the preview. */
  end(partKey: string): void;
  close(): void;
}

/** Over this size, bytes, the journal is rewritten with only the calls in progress. */
const maxBytes = 256_000;

export type JournalPlace = { readonly path: string; readonly holder: string; readonly log: Log };

/** Opens the journal of a process. */
export function openSendJournal({ path, holder, log }: JournalPlace): SendJournal {
  const machine = machineBoot();
  const file = openSync(path, 'a', 0o600);
  const inHand = new Map<string, string>();
  let isKept = machine !== undefined;
  let bytes = 0;

  const rewrite = () => {
    ftruncateSync(file, 0);
    bytes = 0;
    append([JSON.stringify({ machine, holder }), ...inHand.values()]);
  };
  const append = (lines: readonly string[]) => {
    bytes += writeSync(file, `${lines.join('\n')}\n`);
  };
  const note = (line: string) => {
    if (!isKept) return;
    try {
      append([line]);
      if (bytes > maxBytes) rewrite();
    } catch (error) {
      // A call missing from the journal would be sent twice; an empty journal makes no claims.
      isKept = false;
      ftruncateSync(file, 0);
      log.warn({ error }, 'sends.journal-lost');
    }
  };

  const keep = (key: string, line: string) => {
    inHand.set(key, line);
    note(line);
  };

  if (isKept) rewrite();
  return {
    begin: (key) => keep(key, `+${key}`),
    shown: (preview) => keep(preview.key, `=${JSON.stringify(preview)}`),
    end: (key) => {
      inHand.delete(key);
      note(`-${key}`);
    },
    close: () => closeSync(file),
  };
}

const previewSchema = z.object({
  key: z.string(),
  messageId: z.string(),
  laneKey: z.string(),
  epoch: z.number(),
});

/** The journal of a process that has ended, with the previews that it had shown but not recorded. */
export type LeftJournal = JournaledSends & { readonly shown: readonly ShownPreview[] };

/**
 * Reads the sends in progress when a process ended. Undefined if they are unknown because the journal is missing,
 * incomplete or from an earlier boot of the machine.
 */
export function readSendJournal(path: string): LeftJournal | undefined {
  const machine = machineBoot();
  if (machine === undefined) return undefined;
  try {
    const [head = '', ...lines] = readFileSync(path, 'utf8').split('\n');
    const written = parseJson(head) as { readonly machine?: unknown; readonly holder?: unknown };
    if (written.machine !== machine || typeof written.holder !== 'string') return undefined;
    const begun = new Set<string>();
    const shown = new Map<string, ShownPreview>();
    for (const line of lines) {
      const rest = line.slice(1);
      if (line.startsWith('+')) begun.add(rest);
      else if (line.startsWith('='))
        for (const preview of readPreviewLine(rest)) shown.set(preview.key, preview);
      else for (const kept of [begun, shown]) kept.delete(rest);
    }
    return { holder: written.holder, begun: [...begun], shown: [...shown.values()] };
  } catch {
    // Missing, emptied or cut off: the calls in progress are unknown.
    return undefined;
  }
}

/** Returns nothing for a line that a kill has cut short. */
function readPreviewLine(line: string): readonly ShownPreview[] {
  try {
    return [previewSchema.parse(parseJson(line))];
  } catch {
    return [];
  }
}

/** Returns the id that Linux gives each boot. On other systems no journal is kept. */
function machineBoot(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return undefined;
  }
}
