/** Notices to the senders of files. */
import type { StoredAttachment } from '#contracts/attachment.ts';
import { type FileNotice, unreadFilesNotice } from '../store/lanes/file-parts.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';

export type NoticeTexts = Pick<
  ChatTexts,
  'filesUnread' | 'fileUnread' | 'voiceUnheard' | 'voiceNoTranscriber' | 'voiceEcho' | 'voiceSilent'
>;

type FilesOf = {
  readonly inboxId: string;
  readonly conversationKey: string;
  readonly stored: readonly StoredAttachment[];
  /** Whether the sender of a voice message is shown what was understood. */
  readonly isEchoed: boolean;
};

/** Returns the notices about the message's own files: what can't be read, and what was understood of a voice message. */
export function fileNotices(texts: NoticeTexts, files: FilesOf): readonly FileNotice[] {
  const { inboxId, conversationKey, stored, isEchoed } = files;
  const own = stored.flatMap((file) => (file.of === undefined && file.kind === 'stored' ? [file] : []));
  const unread = unreadFilesNotice(texts, inboxId, stored);
  const isUnheard = own.some(
    ({ reading }) => reading?.kind === 'unread' && reading.reason === texts.voiceUnheard,
  );
  const heard = own.flatMap(({ reading }) =>
    reading?.kind === 'transcript' ? [echoOf(texts, reading.text)] : [],
  );
  return [
    ...(unread ? [unread] : []),
    // Once per conversation.
    ...(isUnheard ? [{ key: `${conversationKey}:no-transcriber`, text: texts.voiceNoTranscriber }] : []),
    ...(isEchoed && heard.length > 0 ? [{ key: `${inboxId}:heard`, text: heard.join('\n') }] : []),
  ];
}

const echoLength = 200;

function echoOf(texts: NoticeTexts, transcript: string): string {
  if (transcript === '') return texts.voiceSilent;
  const short =
    transcript.length > echoLength ? `${transcript.slice(0, echoLength - 1).toWellFormed()}…` : transcript;
  return fillText(texts.voiceEcho, { text: short.replaceAll(/\s+/g, ' ') });
}
