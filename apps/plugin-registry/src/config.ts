import { z } from 'zod';

export const PluginRegistryConfig = z.object({
  /** `refuse`: no package without the signature of a trusted publisher is installed, whatever is asked; `allow`: who installs it says. */
  AMBIT_PLUGIN_UNSIGNED: z.enum(['allow', 'refuse']).default('allow'),
  /** Where servers of plugins run, as `linux/x64`. @default the system of this process */
  AMBIT_PLUGIN_PLATFORM: z
    .string()
    .regex(/^[a-z0-9]+\/[a-z0-9]+$/)
    .optional(),
});
export type PluginRegistryConfig = z.output<typeof PluginRegistryConfig>;
