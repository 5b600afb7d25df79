import type { ToolOutput } from '#contracts/tool.ts';
import type { ChannelHost } from '../channel-host/channel-host.ts';
import { mediaFolder } from '../config/media-folder.ts';
import { bytesOf } from '../config/units.ts';
import { createFetcher, type Fetcher } from '../inbound/attachment-fetcher.ts';
import type { InboundPolicy } from '../inbound/inbound-policy.ts';
import type { FreeSpace } from '../inbound/media.ts';
import { startMediaRetention } from '../inbound/media-retention.ts';
import { createFileReader, type FileReader } from '../media/file-reader.ts';
import { createImageFitter, fitImagesOf, maxOldImageSide } from '../media/fit-images.ts';
import { createLocalTranscriber } from '../media/local-transcriber.ts';
import { limitCalls, type Transcriber } from '../media/transcriber.ts';
import { createServerTranscriber } from '../media/transcription-server.ts';
import { documentsIn, imagesIn } from '../runs/framing.ts';
import { nameReceivedFiles } from '../runs/received-files.ts';
import { readReceivedFiles } from '../store/reads/read-received-files.ts';
import type { StageDeps } from './stage-deps.ts';

type MediaParts = {
  readonly policy: InboundPolicy;
  readonly host: ChannelHost;
  readonly space: FreeSpace | undefined;
};

const dayMs = 86_400_000;

/** Wires step 2: downloads the attachments of accepted messages, and removes them when they are old. */
export function wireMedia(stage: StageDeps, { policy, host, space }: MediaParts): Fetcher {
  const { config, closers, store, clock, log, probe, dispatcher, texts } = stage;
  const mediaDir = mediaFolder(config.dataDir);
  const retention = startMediaRetention({
    ...{ store, clock, log, mediaDir },
    keepMs: config.media.keepDays * dayMs,
    channelFor: host.holding,
  });
  closers.add('media retention', retention.stop);
  const fetcher = createFetcher({
    ...{ store, clock, log, probe, texts, mediaDir },
    reader: wireReader(stage),
    echo: config.media.transcriber?.echo ?? 'off',
    maxBytes: bytesOf(config.media.maxMb),
    maxBytesPerHour: bytesOf(config.media.maxMbPerHour),
    // A reload may change it.
    joinMs: () => policy.joinMs,
    hasSpace: () => space?.isEnough() ?? true,
    channelFor: host.holding,
    start: dispatcher.dispatch,
  });
  closers.add('media', fetcher.stop);
  return fetcher;
}

/** Wires what reads files for the model. */
export function wireReader(stage: StageDeps): FileReader {
  const { config, runMediaJob: run, texts } = stage;
  const mediaDir = mediaFolder(config.dataDir);
  return createFileReader({ mediaDir, run, transcriber: transcriberOf(stage), texts });
}

/** How many voice messages are written down at once: most servers work on one after the other. */
const maxTranscriptions = 2;

function transcriberOf({ config, texts }: StageDeps): Transcriber | undefined {
  const { transcriber: settings } = config.media;
  if (settings === undefined) return undefined;
  const { url, folder, language, timeoutMs } = settings;
  if (url !== undefined)
    return limitCalls(createServerTranscriber({ ...settings, url, texts }), maxTranscriptions);
  // A local model takes all memory and time that there is, so one message at a time.
  const local = folder && createLocalTranscriber({ folder, language, timeoutMs, texts });
  return local ? limitCalls(local, 1) : undefined;
}

/** Wires how runs show images and documents to the model. */
export function wireImages({ config, store, runMediaJob }: StageDeps) {
  const mediaDir = mediaFolder(config.dataDir);
  const fitImage = createImageFitter(runMediaJob);
  return {
    fitImage,
    fitImages: (output: ToolOutput, signal: AbortSignal) => fitImagesOf(fitImage, output, signal),
    loadImage: imagesIn(mediaDir, createImageFitter(runMediaJob, { maxSide: maxOldImageSide })),
    loadDocument: documentsIn(mediaDir),
    receivedFiles: async (session: { readonly laneKey: string; readonly sessionId: string }) =>
      nameReceivedFiles(mediaDir, await store.read(readReceivedFiles, session)),
  };
}
