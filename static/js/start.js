// Before anything is painted: the style sheet learns that there is JavaScript, and the server the viewer's zone.
document.documentElement.classList.add("js");
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; SameSite=Lax`;
