/** The settings of what Parley writes down about its own work, both bounded. */
import { z } from 'zod';

/** The log in the data folder. */
export const logFile = z
  .strictObject({
    enabled: z
      .boolean()
      .exactOptional()
      .describe(
        'Also write the log to logs/parley.log in the data folder. Default: unless systemd keeps it.',
      ),
    maxMb: z
      .number()
      .min(1)
      .max(10_000)
      .default(20)
      .describe('Maximum size in megabytes, including the previous file.'),
  })
  .prefault({});

/** Whether the full requests and answers of model calls are logged. */
export const payloadLog = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Write each model request and answer to payloads.jsonl in the data folder, without secrets. The file contains what people wrote.',
      ),
    maxMb: z
      .number()
      .min(1)
      .max(100_000)
      .default(64)
      .describe('Maximum size in megabytes, including the previous file.'),
  })
  .prefault({});
