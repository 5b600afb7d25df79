/**
 * Attaches the files that a tool's result names to the run's next answer: copies them into the media folder and reports
 * the copies in the result's metadata, which is stored with it, so that a resumed run sends them, too.
 */
import { basename, resolve } from 'node:path';
import { z } from 'zod';
import { cleanText } from '#channel-kit/clean-text.ts';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { maxResultFiles, type ToolContext, type ToolOutput } from '#contracts/tool.ts';
import { copyOutgoing, type OutgoingFilesDeps } from './outgoing-files.ts';

export type AttachFilesDeps = OutgoingFilesDeps & {
  capabilitiesFor(route: ReplyRoute): Capabilities | undefined;
};

type AttachedFile = {
  readonly path: string;
  readonly source: string;
  readonly mimeType: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly asVoice?: true;
};

/** Tools come from plugins and may return anything. */
const fileSchema = z.object({
  path: z.string().min(1).max(4096),
  name: z.string().max(255).optional(),
  asVoice: z.boolean().optional(),
});

/**
 * Returns the output with what became of its files: the attached ones in its metadata, and a line about each file for
 * the model. Never throws: a file that can't be sent costs only the file.
 */
export async function attachFiles(
  deps: AttachFilesDeps,
  output: ToolOutput,
  ctx: ToolContext,
): Promise<ToolOutput> {
  const { files, ...rest } = output;
  if (!Array.isArray(files) || files.length === 0) return rest;
  const attached: AttachedFile[] = [];
  const lines: string[] = [];
  for (const given of files.slice(0, maxResultFiles)) {
    const file = fileSchema.safeParse(given).data;
    const result = file === undefined ? 'a file without a path' : await attach(deps, file, ctx);
    if (typeof result === 'string') lines.push(`[not attached: ${result}]`);
    else {
      attached.push(result);
      if (file?.asVoice && !result.asVoice) lines.push(`[${result.name} isn't Ogg Opus: sent as a file]`);
    }
  }
  if (files.length > maxResultFiles)
    lines.push(`[not attached: ${files.length - maxResultFiles} more files]`);
  const names = attached.map(({ name }) => name).join(', ');
  if (attached.length > 0) lines.unshift(`[attached to your next answer: ${names}]`);
  return {
    ...rest,
    text: [...lines, rest.text].join('\n'),
    ...(attached.length > 0 && { metadata: { ...rest.metadata, attached } }),
  };
}

/** Copies one file. Returns a text that says why if it can't be sent. */
async function attach(
  deps: AttachFilesDeps,
  { path, name, asVoice }: z.output<typeof fileSchema>,
  { run, signal }: ToolContext,
): Promise<AttachedFile | string> {
  const shown = oneLine(path).slice(0, 200);
  if (run.route === undefined) return `${shown}: this run's answer goes to no conversation`;
  const maxBytes = deps.capabilitiesFor(run.route)?.media?.maxBytes;
  if (maxBytes === undefined) return `${shown}: this conversation's network takes no files from me`;
  try {
    const [copy] = await copyOutgoing(deps, { run, paths: [path], maxBytes, signal });
    if (copy === undefined) return shown;
    const own = basename(oneLine(name ?? ''));
    const { isOggOpus, ...copied } = copy;
    const source = resolve(run.workspace, path);
    const named = { ...copied, source, name: own === '' ? copy.name : own };
    return asVoice && isOggOpus ? { ...named, asVoice } : named;
  } catch (error) {
    return error instanceof Error ? oneLine(error.message) : shown;
  }
}

function oneLine(text: string): string {
  return cleanText(text).replace(/\s+/g, ' ').trim();
}
