import { z } from 'zod';

export const PluginRegistryConfig = z.object({
  /** `refuse`: no package without the signature of a trusted publisher is installed, whatever is asked; `allow`: who installs it says. */
  AMBIT_PLUGIN_UNSIGNED: z.enum(['allow', 'refuse']).default('allow'),
  /** `1`: a tool of a plugin’s server whose description or schema becomes another is held back until a person accepts it. */
  AMBIT_PLUGIN_HOLD_CHANGES: z.enum(['0', '1']).default('0'),
  /** Where servers of plugins run, as `linux/x64`. @default the system of this process */
  AMBIT_PLUGIN_PLATFORM: z
    .string()
    .regex(/^[a-z0-9]+\/[a-z0-9]+$/)
    .optional(),
});
export type PluginRegistryConfig = z.output<typeof PluginRegistryConfig>;
