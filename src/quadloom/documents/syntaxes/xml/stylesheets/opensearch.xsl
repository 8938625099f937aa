<?xml version="1.0" encoding="UTF-8"?>
<!-- OpenSearch descriptions as RDF: what a site's search is called and by which templates it is asked. -->
<xsl:stylesheet version="1.0"
    xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:ql="urn:quadloom:xslt"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:dcterms="http://purl.org/dc/terms/"
    xmlns:foaf="http://xmlns.com/foaf/0.1/"
    xmlns:os="http://a9.com/-/spec/opensearch/1.1/"
    exclude-result-prefixes="ql">
  <xsl:param name="url"/>

  <xsl:template match="/*">
    <rdf:RDF>
      <os:OpenSearchDescription rdf:about="{$url}">
        <xsl:for-each select="*[local-name() = 'ShortName']">
          <dcterms:title><xsl:value-of select="normalize-space(.)"/></dcterms:title>
        </xsl:for-each>
        <xsl:for-each select="*[local-name() = 'LongName']">
          <dcterms:alternative><xsl:value-of select="normalize-space(.)"/></dcterms:alternative>
        </xsl:for-each>
        <xsl:for-each select="*[local-name() = 'Description']">
          <dcterms:description><xsl:value-of select="normalize-space(.)"/></dcterms:description>
        </xsl:for-each>
        <xsl:for-each select="*[local-name() = 'Language']">
          <dc:language><xsl:value-of select="normalize-space(.)"/></dc:language>
        </xsl:for-each>
        <xsl:for-each select="*[local-name() = 'Image']">
          <foaf:depiction rdf:resource="{ql:resolve(., $url)}"/>
        </xsl:for-each>
        <xsl:for-each select="*[local-name() = 'Url'][@template]">
          <os:Url>
            <rdf:Description>
              <os:template><xsl:value-of select="@template"/></os:template>
              <xsl:if test="@type"><dc:format><xsl:value-of select="@type"/></dc:format></xsl:if>
              <xsl:if test="@rel"><os:rel><xsl:value-of select="@rel"/></os:rel></xsl:if>
            </rdf:Description>
          </os:Url>
        </xsl:for-each>
      </os:OpenSearchDescription>
    </rdf:RDF>
  </xsl:template>
</xsl:stylesheet>
