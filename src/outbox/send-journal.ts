import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { Log } from '#contracts/log.ts';
import type { ShownPreview } from '../store/delivery/record-preview.ts';
import type { JournaledSends } from '../store/processes/process-records.ts';

/**
 * Which calls to a platform have begun. A part is `sending` in the store a moment before its call
 * begins; this tells, after a `kill -9`, which side of that moment the process died on: what had not
 * begun is sent after all, and need not be called unknown. It also keeps the platform's id of a preview until the
 * store has it, so that no preview stays beside its answer. Not flushed to the disk: what the operating system holds
 * survives the process, and after a crash of the machine the journal does not count.
 */
export interface SendJournal {
  begin(partKey: string): void;
  /** The platform has taken a preview. */
  shown(preview: ShownPreview): void;
  /** Called when the store knows what became of the call, or has the preview. */
  end(partKey: string): void;
  close(): void;
}

/** Longer than this, it is written anew with the calls in hand, bytes. */
const maxBytes = 256_000;

export type JournalPlace = { readonly path: string; readonly holder: string; readonly log: Log };

/** Begins the journal of a process. */
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
      // One call too few in it would be one sent twice: an empty journal says nothing at all.
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

/** The journal of a process that has ended, with the previews that it had shown and not recorded. */
export type LeftJournal = JournaledSends & { readonly shown: readonly ShownPreview[] };

/**
 * Sends in progress when a process ended. Undefined when unknown: the journal is missing, of an earlier boot of
 * the machine, or not whole.
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
    // Missing, emptied or cut off: it says nothing, and what was in hand is unknown.
    return undefined;
  }
}

/** None for a line that a kill has cut short. */
function readPreviewLine(line: string): readonly ShownPreview[] {
  try {
    return [previewSchema.parse(parseJson(line))];
  } catch {
    return [];
  }
}

/** Linux names each start of the machine. Elsewhere the journal is not kept. */
function machineBoot(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return undefined;
  }
}
