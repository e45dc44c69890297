/** The few icons of the page, as strokes in the colour of the text around them. */

import type { ComponentChildren } from "preact";

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      {children}
    </svg>
  );
}

export const PlusIcon = () => (
  <Icon>
    <path d="M10 4v12M4 10h12" />
  </Icon>
);

export const MenuIcon = () => (
  <Icon>
    <path d="M3 6h14M3 10h14M3 14h14" />
  </Icon>
);

export const SendIcon = () => (
  <Icon>
    <path d="M10 16V4.5M5 9l5-5 5 5" />
  </Icon>
);

export const StopIcon = () => (
  <Icon>
    <rect class="solid" x="5.5" y="5.5" width="9" height="9" rx="1.5" />
  </Icon>
);

export const CopyIcon = () => (
  <Icon>
    <rect x="7" y="7" width="9" height="9" rx="2" />
    <path d="M13 7V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v5a2 2 0 0 0 2 2h1" />
  </Icon>
);

export const CheckIcon = () => (
  <Icon>
    <path d="M4.5 10.5l3.5 3.5 7.5-8" />
  </Icon>
);

export const BinIcon = () => (
  <Icon>
    <path d="M4 6h12M8 6V4h4v2M5.5 6l.7 10h7.6l.7-10M8.5 9v4.5M11.5 9v4.5" />
  </Icon>
);

export const DownIcon = () => (
  <Icon>
    <path d="M10 4v11.5M5 11l5 5 5-5" />
  </Icon>
);

export const CloseIcon = () => (
  <Icon>
    <path d="M5 5l10 10M15 5L5 15" />
  </Icon>
);

export const PanelIcon = () => (
  <Icon>
    <path d="M3.5 4.5h13v11h-13zM12.5 4.5v11" />
  </Icon>
);

export const EditIcon = () => (
  <Icon>
    <path d="M4 16l.8-3.4L13.2 4.2l2.6 2.6-8.4 8.4zM11.5 6l2.5 2.5" />
  </Icon>
);

export const RegenerateIcon = () => (
  <Icon>
    <path d="M15.5 10a5.5 5.5 0 1 1-1.6-3.9L16 8M16 4v4h-4" />
  </Icon>
);

export const ContinueIcon = () => (
  <Icon>
    <path d="M4 10h11M10.5 5.5L15 10l-4.5 4.5" />
  </Icon>
);

export const PreviousIcon = () => (
  <Icon>
    <path d="M12 5l-5 5 5 5" />
  </Icon>
);

export const NextIcon = () => (
  <Icon>
    <path d="M8 5l5 5-5 5" />
  </Icon>
);

export const MoreIcon = () => (
  <Icon>
    <path d="M5 10h.01M10 10h.01M15 10h.01" />
  </Icon>
);

export const PinIcon = () => (
  <Icon>
    <path d="M7 4h6M8 4v5l-2 2.5h8L12 9V4M10 11.5V16" />
  </Icon>
);

export const DownloadIcon = () => (
  <Icon>
    <path d="M10 4v8M6.5 9l3.5 3.5L13.5 9M4 16h12" />
  </Icon>
);

export const UploadIcon = () => (
  <Icon>
    <path d="M10 12.5V4.5M6.5 8L10 4.5 13.5 8M4 16h12" />
  </Icon>
);

export const LeaveIcon = () => (
  <Icon>
    <path d="M8 4H4v12h4M8 10h8.5M13 6.5l3.5 3.5-3.5 3.5" />
  </Icon>
);

export const TreeIcon = () => (
  <Icon>
    <path d="M7 10h3M13 5h-1.5A1.5 1.5 0 0 0 10 6.5v7a1.5 1.5 0 0 0 1.5 1.5H13" />
    <rect x="3" y="8" width="4" height="4" rx="1" />
    <rect x="13" y="3" width="4" height="4" rx="1" />
    <rect x="13" y="13" width="4" height="4" rx="1" />
  </Icon>
);

export const GaugeIcon = () => (
  <Icon>
    <path d="M4 15a7.5 7.5 0 1 1 12 0M10 11l3-4" />
  </Icon>
);

export const ClipIcon = () => (
  <Icon>
    <path d="M16.5 9.5l-6 6a3.6 3.6 0 0 1-5-5l6.5-6.5a2.4 2.4 0 0 1 3.4 3.4l-6.4 6.4a1.2 1.2 0 0 1-1.7-1.7l5.7-5.700" />
  </Icon>
);

export const FileIcon = () => (
  <Icon>
    <path d="M5.5 3h6l3.5 3.5V17h-9.5zM11.5 3v3.5h3.5M8 10.5h4.5M8 13.5h4.5" />
  </Icon>
);

export const GearIcon = () => (
  <Icon>
    <path d="M3 6h7M14 6h3M3 14h3M10 14h7" />
    <circle cx="12" cy="6" r="2" />
    <circle cx="8" cy="14" r="2" />
  </Icon>
);

export const KeyboardIcon = () => (
  <Icon>
    <rect x="2" y="5" width="16" height="10.5" rx="2" />
    <path d="M5 8.5h.01M8.3 8.5h.01M11.7 8.5h.01M15 8.5h.01M7 12.2h6" />
  </Icon>
);
