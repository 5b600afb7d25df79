/**
 * The codec of messages between agents: a head in YAML, then the body. Files of a mailbox, answers of `tasks/send` and
 * what programs send have this form. Everything in a head is data; a sender's rights come from elsewhere.
 */
import { cleanText } from '#channel-kit/clean-text.ts';
import { isMatterFence, parseMatter, splitMatter } from '#channel-kit/front-matter.ts';
import { type TaskMode, taskModeSchema } from '#contracts/task.ts';
import { suggestName } from '../config/suggestion.ts';

/** Longest body, bytes of UTF-8: as long as the longest result of an agent. */
export const maxTaskBodyBytes = 100 * 1024;
/** Longest value of a head, UTF-16 units. */
const maxValueChars = 200;

/** A task for an agent. */
export type TaskHead = {
  readonly type: 'task';
  readonly taskId: string;
  readonly subtaskId: string;
  /** Who asks; a name, not a right. */
  readonly from: string;
  /** Id of the agent that is asked; absent: the one that the message is sent to. */
  readonly to?: string;
  /** Absent: the agent decides. */
  readonly mode?: TaskMode;
};

/** The end of a task, for the one who asked. */
export type ReplyHead = {
  readonly type: 'reply';
  readonly taskId: string;
  readonly subtaskId: string;
  readonly from: string;
  readonly to?: string;
  readonly status: 'done' | 'failed';
};

/** A message; `body` begins and ends with a visible character, and may be empty for a reply. */
export type TaskMail = { readonly head: TaskHead | ReplyHead; readonly body: string };

/** `problem`: one sentence that names the line or the field, and says what to change. */
export type TaskMailResult =
  | { readonly kind: 'mail'; readonly mail: TaskMail }
  | { readonly kind: 'refused'; readonly problem: string };

/** The subtask of a message that names none. */
export const wholeTask = 'main';

/** Says whether a text means to be such a message: it begins with a head that has a `type`. */
export function isTaskMail(text: string): boolean {
  const [first = '', ...lines] = unfenced(text).text.split('\n', maxHeadLines);
  if (!isMatterFence(first)) return false;
  const end = lines.findIndex(isMatterFence);
  return lines.slice(0, end === -1 ? lines.length : end).some((line) => /^\s*["']?type["']?\s*:/i.test(line));
}

/** A head without an end is looked for this far. */
const maxHeadLines = 100;

/** Parses a message. Unknown fields, and those that mean nothing for its type, are refused rather than dropped. */
export async function parseTaskMail(text: string): Promise<TaskMailResult> {
  const { text: plain, line } = unfenced(text);
  const parts = splitMatter(plain);
  if (parts === 'none')
    return refuse('the message must begin with a line ---, its head, and a second line ---');
  if (parts === 'unclosed')
    return refuse(`the head that begins on line ${line} has no end: put a line --- before the body`);
  const read = await parseMatter({ matter: parts.matter, line: line + 1 }, 'failsafe');
  if (read.kind === 'refused') return read;
  const fields = fieldsOf(read.matter);
  if (typeof fields === 'string') return refuse(fields);
  const head = headOf(fields);
  if (typeof head === 'string') return refuse(head);
  const body = cleanText(parts.body.replaceAll('\r\n', '\n')).trim();
  const bytes = Buffer.byteLength(body);
  if (bytes > maxTaskBodyBytes)
    return refuse(
      `the body has ${bytes} bytes; the limit is ${maxTaskBodyBytes}. Put the rest in a file in the agent's workspace`,
    );
  if (body === '' && head.type === 'task')
    return refuse('the body is empty: write what to do below the second line ---');
  return { kind: 'mail', mail: { head, body } };
}

/** Writes a message, which `parseTaskMail` reads as the same. */
export function formatTaskMail({ head, body }: TaskMail): string {
  const lines = Object.entries(fieldNames).flatMap(([name, key]) => {
    const value = name === 'status' && head.type === 'task' ? 'open' : head[key as keyof typeof head];
    return value === undefined ? [] : [`${name}: ${yamlText(value)}`];
  });
  return `---\n${lines.join('\n')}\n---\n\n${body}\n`;
}

/** Writes a text as a YAML value on one line, which every reader takes for that text. */
export function yamlText(text: string): string {
  if (/^[a-z][\w.-]*$/i.test(text) && !/^(null|true|false|yes|no|on|off|y|n)$/i.test(text)) return text;
  // Two characters that JSON leaves as they are end a line in YAML, and others may not occur in it.
  return JSON.stringify(text.toWellFormed()).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const fieldNames = {
  ...{ type: 'type', task_id: 'taskId', subtask_id: 'subtaskId', from: 'from', to: 'to' },
  ...{ status: 'status', mode: 'mode' },
} as const;
type FieldName = keyof typeof fieldNames;
type Fields = ReadonlyMap<FieldName, string>;

const nameOf = new Map(Object.keys(fieldNames).map((name) => [folded(name), name as FieldName]));

/** Models and people write the same name in several ways. */
function folded(key: string): string {
  return key.toLowerCase().replace(/[-_\s]/g, '');
}

/** Returns the fields of a head by their names, without empty ones; or what is wrong with one. */
function fieldsOf(matter: unknown): Fields | string {
  const known = Object.keys(fieldNames).join(', ');
  if (typeof matter !== 'object' || matter === null || Array.isArray(matter))
    return `the head must have fields: ${known}`;
  const fields = new Map<FieldName, string>();
  const seen = new Set<FieldName>();
  for (const [key, value] of Object.entries(matter)) {
    const name = nameOf.get(folded(key));
    if (name === undefined) return unknownField(key, known);
    if (seen.has(name)) return `the head has "${name}" twice; keep one`;
    seen.add(name);
    if (typeof value !== 'string') return `"${name}" must be a text`;
    const text = value.trim();
    if (text.length > maxValueChars) return `"${name}" has more than ${maxValueChars} characters`;
    if (/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\ufffd]/u.test(text)) return `"${name}" must be one line of text`;
    if (text !== '' && text !== '~' && text !== 'null') fields.set(name, text);
  }
  return fields;
}

function unknownField(key: string, known: string): string {
  const shown = cleanText(key).slice(0, 40);
  const meant = suggestName(key, Object.keys(fieldNames));
  return `the head has an unknown field "${shown}"${meant ? `; do you mean "${meant}"?` : `. Its fields are: ${known}`}`;
}

/** Makes the head of the fields; or says what is wrong with one. */
function headOf(fields: Fields): TaskHead | ReplyHead | string {
  const [type, taskId, to] = [fields.get('type'), fields.get('task_id'), fields.get('to')];
  if (type !== 'task' && type !== 'reply') return '"type" must be task or reply';
  if (taskId === undefined) return '"task_id" is missing: the sender\'s own name for the task';
  const ids = { taskId, subtaskId: fields.get('subtask_id') ?? wholeTask, from: fields.get('from') ?? human };
  const toAgent = to === undefined ? {} : { to };
  const [status, mode] = [fields.get('status'), fields.get('mode')];
  if (type === 'task') {
    if (status !== undefined && status !== 'open') return '"status" of a task must be open, or absent';
    const parsed = taskModeSchema.safeParse(mode);
    if (mode !== undefined && !parsed.success) return '"mode" must be direct or coordinating, or absent';
    return { type, ...ids, ...toAgent, ...(parsed.success && { mode: parsed.data }) };
  }
  if (mode !== undefined) return '"mode" belongs to tasks; remove it from the reply';
  if (!fields.has('subtask_id')) return '"subtask_id" is missing: the subtask that the reply is for';
  if (status !== 'done' && status !== 'failed') return '"status" of a reply must be done or failed';
  return { type, ...ids, ...toAgent, status };
}

/** The sender of a message that names none. */
const human = 'human';

/**
 * Removes what surrounds a message without being part of it: a byte order mark, empty lines, and one fence that models
 * put around the whole message or its head. `line`: where the head begins.
 */
function unfenced(text: string): { readonly text: string; readonly line: number } {
  const lines = text.replace(/^\ufeff/, '').split('\n');
  const start = lines.findIndex((line) => line.trim() !== '');
  const rest = lines.slice(Math.max(0, start));
  const fence = /^(`{3,}|~{3,})[\w-]*\s*$/.exec(rest[0] ?? '')?.[1];
  const plain = { text: rest.join('\n'), line: Math.max(0, start) + 1 };
  if (fence === undefined || !isMatterFence(rest[1] ?? '')) return plain;
  const inner = rest.slice(1);
  const last = inner.findLastIndex((line) => line.trim() !== '');
  const headEnd = inner.findIndex((line, index) => index > 0 && isMatterFence(line));
  const isFence = (index: number) => inner[index]?.trimEnd() === fence;
  const closing = headEnd !== -1 && isFence(headEnd + 1) ? headEnd + 1 : last;
  if (!isFence(closing)) return plain;
  return { text: inner.filter((_, index) => index !== closing).join('\n'), line: plain.line + 1 };
}

function refuse(problem: string): { readonly kind: 'refused'; readonly problem: string } {
  return { kind: 'refused', problem };
}
